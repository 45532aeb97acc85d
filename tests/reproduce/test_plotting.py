import itertools
import re

import numpy as np
from matplotlib import image

from asgat.report.figures import new_figure
from reproduce import paper
from reproduce.plotting import COLOURS, MARKERS, dataset_title, save_figure, shared_legend


def drawn(tmp_path, quick):
    figure = new_figure(4, 3)
    figure.subplots().plot([1, 2])
    return image.imread(save_figure(figure, tmp_path / f"{quick}.png", quick))


def test_a_quick_figure_is_stamped(tmp_path):
    stamped, clean = drawn(tmp_path, True), drawn(tmp_path, False)
    assert stamped.shape == clean.shape
    share = np.mean((stamped != clean).any(axis=-1))
    assert 0.02 < share < 0.5


def test_colours_and_markers_differ():
    assert len(set(MARKERS)) == len(MARKERS) == len(COLOURS)
    rgb = [np.array([int(part, 16) for part in re.findall("..", colour[1:])]) for colour in COLOURS]
    assert min(np.abs(a - b).sum() for a, b in itertools.combinations(rgb, 2)) > 80


def test_titles():
    assert [dataset_title(name) for name in paper.DATASETS][:3] == ["Cora", "Pubmed", "CiteSeer"]
    assert all(dataset_title(name).lower() == name for name in paper.DATASETS)
    assert dataset_title("csbm") == "csbm"


def test_the_legend_has_the_entries_of_the_fullest_panel():
    figure = new_figure(4, 2)
    axes = figure.subplots(1, 2)
    for i, axis in enumerate(axes):
        for line in range(i + 1):
            axis.plot([1, 2], label=f"line {line}")
    shared_legend(figure, axes, 2)
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["line 0", "line 1"]
