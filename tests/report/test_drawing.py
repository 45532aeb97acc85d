import pytest
from matplotlib.image import imread

from asgat.errors import AsgatError
from asgat.report.drawing import new_figure, style_axis, write_png


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
