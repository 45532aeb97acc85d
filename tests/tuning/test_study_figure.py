from typing import Any

import pytest

from asgat.tuning.space import Range, Space
from asgat.tuning.study_figure import study_figure

SPACE: Space = {"lr": Range(1e-3, 0.1, True), "heads": Range(1, 8), "elu": ("every", "none")}


def row(trial, value, **extra):
    settings = {"lr": 0.001 * (trial + 1), "heads": 1 + trial % 8, "elu": ("every", "none")[trial % 2]}
    return {"trial": trial, "value": value, "settings": settings, **extra}


@pytest.mark.parametrize("values", [[0.5], [0.5, 0.7, 0.6], [0.0, 0.0], [0.9, 0.1, 0.88]])
def test_a_figure_of_any_search_is_drawn(values, tmp_path):
    path = study_figure([row(i, value) for i, value in enumerate(values)], SPACE, tmp_path / "a" / "s.png", "title")
    assert path.read_bytes().startswith(b"\x89PNG")


def test_scores_and_the_best_so_far_are_what_is_drawn(tmp_path, monkeypatch):
    from matplotlib.figure import Figure

    drawn: dict[str, Any] = {}
    monkeypatch.setattr(Figure, "savefig", lambda self, *_, **__: drawn.update(axes=self.axes))
    values = [0.6, 0.5, 0.7, 0.0, 0.65]
    rows = [row(i, value, **({"error": "no"} if value == 0 else {})) for i, value in enumerate(values)]
    study_figure(rows, SPACE, tmp_path / "s.png", "a title")
    over, *settings = drawn["axes"]
    assert over.get_title() == "a title"
    (line,) = over.lines
    assert line.get_ydata().tolist() == pytest.approx([60, 60, 70, 70, 70])
    assert over.collections[0].get_offsets()[:, 1].tolist() == pytest.approx([60, 50, 70, 65])
    assert over.collections[1].get_offsets()[:, 0].tolist() == [3], "failed trials are marked"
    assert [axis.get_xlabel() for axis in settings] == list(SPACE)
    assert settings[0].collections[1].get_offsets()[0].tolist() == pytest.approx([0.003, 70]), "the best has a ring"
    assert [tick.get_text() for tick in settings[2].get_xticklabels()] == ["every", "none"]
