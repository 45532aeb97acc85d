import itertools
import re

import numpy as np
from matplotlib import image

from asgat.experiments import paper
from asgat.experiments.plotting import COLOURS, MARKERS, new, plain, plain_numbers, save, title


def drawn(tmp_path, quick):
    figure = new(4, 3)
    figure.subplots().plot([1, 2])
    return image.imread(save(figure, tmp_path / f"{quick}.png", quick))


def test_a_quick_figure_says_so_across_its_face(tmp_path):
    stamped, clean = drawn(tmp_path, True), drawn(tmp_path, False)
    assert stamped.shape == clean.shape
    share = np.mean((stamped != clean).any(axis=-1))
    assert 0.02 < share < 0.5


def test_colours_are_apart_and_marks_differ():
    assert len(set(MARKERS)) == len(MARKERS) == len(COLOURS)
    rgb = [np.array([int(part, 16) for part in re.findall("..", colour[1:])]) for colour in COLOURS]
    assert min(np.abs(a - b).sum() for a, b in itertools.combinations(rgb, 2)) > 80


def test_titles():
    assert [title(name) for name in paper.DATASETS][:3] == ["Cora", "Pubmed", "CiteSeer"]
    assert all(title(name).lower() == name for name in paper.DATASETS)
    assert title("csbm") == "csbm"


def test_axes(tmp_path):
    figure = new(3, 2)
    axis = figure.subplots()
    axis.plot([1, 10, 100], [1, 10, 100])
    axis.set(xscale="log", yscale="log")
    plain(axis)
    plain_numbers(axis)
    figure.canvas.draw()
    assert "100" in [label.get_text() for label in axis.get_xticklabels()]
    assert not axis.spines["top"].get_visible()
