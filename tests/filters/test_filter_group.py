import torch

from asgat.filters import HeatFilter, MLPFilter
from asgat.filters.filter_group import FilterGroup


def test_the_responses_are_those_of_the_filters_side_by_side() -> None:
    filters = [MLPFilter(3), MLPFilter(1)]
    group, frequency = FilterGroup(filters), torch.linspace(0, 2, 7)
    assert group.heads == 4
    assert not list(group.parameters())
    assert torch.equal(group(frequency), torch.cat([filter(frequency) for filter in filters], dim=1))
    matrix = torch.randn(7, 5, dtype=torch.float64)
    for name, given in (("transformed", frequency), ("transformed_in_double", frequency.double())):
        own = matrix.to(given.dtype)
        parts = [getattr(filter, name)(given, own) for filter in filters]
        assert torch.equal(getattr(group, name)(given, own), torch.cat(parts))


def test_it_is_fixed_if_all_filters_are() -> None:
    assert FilterGroup([HeatFilter(2), HeatFilter(1)]).fixed
    assert not FilterGroup([HeatFilter(2), MLPFilter(1)]).fixed
