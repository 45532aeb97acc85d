"""The faults themselves: each is one change, all are found, and the sample is what its seed says."""

import ast

import pytest
from tests.mutation.mutants import list_mutants, mutate
from tests.mutation.run import MODULES, SOURCE, own_tests, sample, summary

CODE = '''
"""Words."""
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    import numpy
@wrap(1)
def f(a: int | None, b=2) -> float | None:
    """Words."""
    if not a < b and max(a, 0.5) == 3:
        raise ValueError(f"{a + 1}")
    for x in a:
        b += 1
        break
    return -a * b
'''


def faults(source):
    return [mutant.what for mutant in list_mutants(source)]


def test_every_kind_of_fault():
    expected = "2 to 3|2 to 1|condition negated|And to Or|Not dropped|Lt to LtE|Lt to Gt|Eq to NotEq|max to min"
    expected += "|0.5 to 1.5|0.5 to 0.25|3 to 4|3 to 2|Add to Sub|1 to 2|1 to 0|break to pass|returns None"
    expected += "|Mult to Div|USub dropped"
    assert sorted(faults(CODE)) == sorted(expected.split("|"))


def test_each_is_another_program_and_one_line_away():
    whole = ast.unparse(ast.parse(CODE)).splitlines()
    seen = set()
    for mutant in list_mutants(CODE):
        lines = mutate(CODE, mutant.number).splitlines()
        assert len(lines) == len(whole)
        assert sum(one != other for one, other in zip(lines, whole, strict=True)) == 1, mutant
        seen.add("\n".join(lines))
    assert len(seen) == len(list_mutants(CODE))
    with pytest.raises(IndexError):
        mutate(CODE, len(seen))


def test_a_key_outlives_changes_of_other_functions():
    before = "x = 3\nclass A:\n    def f(self, a):\n        return a < 3\n    def g(self, a):\n        return a + 2\n"
    keys = [mutant.key for mutant in list_mutants(before)]
    assert len(set(keys)) == len(keys)
    after = [mutant.key for mutant in list_mutants(before.replace("a < 3", "a < 3 + 1"))]
    assert set(keys) - set(after) == {mutant.key for mutant in list_mutants(before) if mutant.line == 4}


def test_the_sample_is_drawn_from_every_module_and_by_its_seed():
    chosen = sample(220, 0)
    assert chosen == sample(220, 0) != sample(220, 1)
    assert 200 <= len(chosen) == len(set(chosen))
    assert {module for module, _ in chosen} == set(MODULES)
    for module, mutant in chosen[::20]:
        compile(mutate((SOURCE / module).read_text(encoding="utf-8"), mutant.number), str(module), "exec")
        assert all((SOURCE.parent / test).is_file() for test in own_tests(module))


def test_the_summary_leaves_out_what_is_equivalent():
    rows = [{"outcome": "killed"}] * 17 + [{"outcome": "survived"}] * 3 + [{"outcome": "survived", "equivalent": "x"}]
    assert summary(rows) == "21 mutants, 1 equivalent, 20 counted, 3 survived (15.0 %)"
