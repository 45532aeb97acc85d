import io
from functools import partial

import matplotlib as mpl
import numpy as np
import pytest
import torch
from matplotlib.image import imread

from asgat.data import load_dataset
from asgat.errors import AsgatError
from asgat.explain.head_responses import head_responses
from asgat.filters import BandStop, HeatFilter, MLPFilter, PolynomialFilter
from asgat.graph import Graph
from asgat.nn import ASGAT
from asgat.nn.deep import ASGATDeep
from asgat.report.figures import _panels, comparison_figure, filter_figure, new_figure, style_axis, write_png

KARATE = load_dataset("karate").graph


def model_with(filter=MLPFilter, layers=2, heads=3):
    return ASGAT(4, 4, 2, num_layers=layers, heads=heads, out_heads=heads, filter=filter)


def draw(tmp_path, model, graph=KARATE, title="a title"):
    """The picture, checked to be a PNG with something drawn on it."""
    path = tmp_path / "filters.png"
    assert filter_figure(model, graph, path, title) == path
    content = path.read_bytes()
    assert content.startswith(b"\x89PNG\r\n\x1a\n")
    assert len(content) > 5_000
    picture = imread(io.BytesIO(content))
    assert min(picture.shape[:2]) > 300
    assert picture[..., :3].std() > 0.02
    return picture


def check_panels(picture, columns, rows=1):
    height, width = picture.shape[:2]
    assert width == pytest.approx(150 * (4.8 * columns + 1.0), abs=1)
    assert height == pytest.approx(150 * 4.4 * rows, abs=1)


@pytest.mark.parametrize(
    ("layers", "heads", "columns", "rows"), [(1, 1, 1, 1), (1, 12, 2, 1), (3, 8, 3, 1), (5, 2, 4, 2)]
)
def test_a_layer_has_a_panel_for_every_eight_heads(tmp_path, layers, heads, columns, rows):
    check_panels(draw(tmp_path, model_with(layers=layers, heads=heads)), columns, rows)


@pytest.mark.parametrize(("layers", "heads"), [(2, 8), (5, 5)])
def test_a_legend_covers_no_curve(tmp_path, monkeypatch, layers, heads):
    drawn = []
    monkeypatch.setattr("asgat.report.figures.write_png", lambda figure, path: drawn.append(figure))
    filter_figure(model_with(layers=layers, heads=heads), KARATE, tmp_path / "filters.png", "a title")
    (figure,) = drawn
    figure.draw_without_rendering()
    panels = [axis for axis in figure.axes if axis.get_legend()]
    assert len(panels) == layers
    legends = [axis.get_legend().get_window_extent() for axis in panels]
    for place, legend in enumerate(legends):
        assert not any(legend.overlaps(other.get_window_extent()) for other in panels)
        assert not any(legend.overlaps(other) for other in legends[:place])
        assert figure.bbox.containsx(legend.x0)
        assert figure.bbox.containsx(legend.x1)
        assert figure.bbox.containsy(legend.y0)


@pytest.mark.parametrize(("channels", "panels"), [("attention+filters", 4), ("filters", 2), ("attention+mean", 2)])
def test_attention_and_filters_of_a_block_have_panels_of_their_own(tmp_path, channels, panels):
    model = ASGATDeep(4, 6, 2, num_layers=2, heads=3, channels=channels)
    check_panels(draw(tmp_path, model), panels)
    kinds = {(name, kind) for name, kind, _, _ in _panels(head_responses(model, KARATE), model.layer_name)}
    assert len(kinds) == panels
    if channels == "attention+filters":
        assert ("block 2, filters", "filters") in kinds


def test_a_model_without_heads_has_no_picture(tmp_path):
    model = ASGATDeep(4, 6, 2, channels="mean")
    assert filter_figure(model, KARATE, tmp_path / "filters.png", "a title") is None
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "filter",
    [
        HeatFilter,
        partial(HeatFilter, learned=True),
        PolynomialFilter,
        partial(PolynomialFilter, degree=0),  # a constant response
        lambda heads: BandStop(MLPFilter(heads), 0.5, 1.0),
        lambda heads: BandStop(MLPFilter(heads), 0.0, 2.0),  # nothing is left
    ],
    ids=["heat", "learned heat", "polynomial", "constant", "band-stop", "silence"],
)
def test_any_filter(tmp_path, filter):
    draw(tmp_path, model_with(filter))


@pytest.mark.parametrize(
    "graph",
    [
        Graph.from_edges([[], []], 1),
        Graph.from_edges([[0], [0]], 1),
        Graph.from_edges([[], []], 2),
        Graph.from_edges([[0], [1]], 2),
        Graph.from_edges([[0, 1, 3], [1, 2, 4]], 9),
    ],
    ids=["a node", "a loop", "two nodes", "an edge", "isolated nodes"],
)
def test_any_graph(tmp_path, graph):
    draw(tmp_path, model_with(layers=1), graph)


def test_the_picture_shows_the_filter_and_the_graph(tmp_path):
    first = draw(tmp_path, model_with(HeatFilter))
    assert np.array_equal(first, draw(tmp_path, model_with(HeatFilter)))
    other_filter = draw(tmp_path, model_with(partial(HeatFilter, scale=5.0)))
    assert not np.array_equal(first, other_filter)
    other_graph = draw(tmp_path, model_with(HeatFilter), Graph.from_edges([[0], [1]], 2))
    assert not np.array_equal(first, other_graph)


def test_the_model_is_left_as_it_was(tmp_path):
    model = model_with()
    before = {key: value.clone() for key, value in model.state_dict().items()}
    draw(tmp_path, model)
    assert all(torch.equal(value, before[key]) for key, value in model.state_dict().items())
    assert all(parameter.grad is None for parameter in model.parameters())


def test_the_users_matplotlib_is_left_alone(tmp_path):
    import matplotlib.pyplot as plt

    with mpl.rc_context({"backend": "svg"}):
        draw(tmp_path, model_with())
        assert mpl.rcParams["backend"] == "svg"
    assert plt.get_fignums() == []


def test_a_place_that_cannot_be_written_is_an_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(AsgatError, match="cannot be written"):
        filter_figure(model_with(), KARATE, tmp_path / "file" / "filters.png", "a title")


# -- comparisons ------------------------------------------------------------------------------------


def result(model, mean, **scores):
    spread = {"mean": mean, "std": 0.05}
    return {"dataset": "karate", "model": model, "runs": [0, 1], "micro_f1": spread, "macro_f1": spread, **scores}


def compare(tmp_path, *rows):
    path = tmp_path / "comparison.png"
    assert comparison_figure(rows, path) == path
    return imread(path)


def width_of_bars(picture, colour):
    """The columns in which a colour is found, as a share of the picture."""
    near = (np.abs(picture[..., :3] - np.array(colour) / 255) < 0.02).all(axis=-1)
    return near.any(axis=0).mean()


BLUE, ORANGE = (0x1B, 0x6C, 0xA8), (0xF2, 0xA6, 0x5A)


@pytest.mark.parametrize("count", [1, 2, 13])
def test_a_comparison_grows_with_its_models(tmp_path, count):
    picture = compare(tmp_path, *(result(f"model-{i}", 0.5) for i in range(count)))
    assert picture.shape[0] == pytest.approx(150 * (1.5 + 0.5 * count), abs=1)


def test_bars_are_as_long_as_the_scores(tmp_path):
    short, long = (compare(tmp_path, result("gcn", mean)) for mean in (0.3, 0.9))
    for colour in (BLUE, ORANGE):
        ratio = width_of_bars(long, colour) / width_of_bars(short, colour)
        assert 2.5 < ratio < 3.2  # the legend adds a little to both


def test_where_there_is_an_area_under_the_curve_it_comes_first(tmp_path):
    area = {"roc_auc": {"mean": 0.9, "std": 0.01}}
    picture = compare(tmp_path, result("gcn", 0.3, **area))
    assert width_of_bars(picture, BLUE) > 2 * width_of_bars(picture, ORANGE)


def test_a_comparison_of_nothing_new_is_the_same_picture(tmp_path):
    first = compare(tmp_path, result("gcn", 0.3), result("mlp", 0.6))
    assert np.array_equal(first, compare(tmp_path, result("gcn", 0.3), result("mlp", 0.6)))
    assert not np.array_equal(first, compare(tmp_path, result("mlp", 0.6), result("gcn", 0.3)))


def test_a_directed_graph_has_the_spectrum_of_its_double_cover(tmp_path):
    directed = Graph.from_edges(KARATE.edges_once()[0], 34, directed=True)
    model = model_with()
    assert np.array_equal(draw(tmp_path, model, directed), draw(tmp_path, model, directed.double_cover))


def test_a_figure_is_written_in_its_size(tmp_path):
    path = write_png(new_figure(3.0, 2.0), tmp_path / "folder" / "figure.png", dpi=100)
    assert path == tmp_path / "folder" / "figure.png"
    assert imread(path).shape[:2] == (200, 300)


def test_the_style_of_an_axis():
    axis = new_figure(3.0, 2.0).subplots()
    style_axis(axis, "y")
    assert [axis.spines[side].get_visible() for side in ("top", "right", "left", "bottom")] == [
        False,
        False,
        True,
        True,
    ]
    shown = [any(line.get_visible() for line in which.get_gridlines()) for which in (axis.xaxis, axis.yaxis)]
    assert shown == [False, True]


def test_a_file_that_cannot_be_written_is_an_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(AsgatError, match="cannot be written"):
        write_png(new_figure(3.0, 2.0), tmp_path / "file" / "figure.png")
