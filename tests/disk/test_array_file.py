import numpy as np
import pytest

from asgat.disk.array_file import read_array
from asgat.errors import AsgatError

X = np.random.default_rng(0).random((40, 3)).astype(np.float32)


def test_a_npy_file_is_mapped(tmp_path):
    np.save(tmp_path / "x.npy", X)
    assert isinstance(read_array(tmp_path / "x.npy").base, np.memmap)
    assert np.array_equal(read_array(tmp_path / "x.npy"), X)


@pytest.mark.parametrize("heading", [True, False])
@pytest.mark.parametrize("separator", [",", ";", "\t", " "])
def test_text_with_a_heading_or_without(tmp_path, separator, heading):
    lines = [separator.join("abc")] * heading + [separator.join(map(str, row)) for row in X.tolist()]
    (tmp_path / "x.csv").write_text("\n".join(lines) + "\n")
    assert np.allclose(read_array(tmp_path / "x.csv"), X)


def test_whole_numbers(tmp_path):
    (tmp_path / "y.csv").write_text("\n".join(str(v % 2) for v in range(40)))
    assert read_array(tmp_path / "y.csv", whole=True).tolist() == [0, 1] * 20


@pytest.mark.parametrize("content", ["1,2\n3,x\n", "", "a,b\n", "1,2\n3\n"])
def test_text_that_is_not_numbers(tmp_path, content):
    (tmp_path / "bad.csv").write_text(content)
    with pytest.raises(AsgatError, match="cannot be read as numbers"):
        read_array(tmp_path / "bad.csv")


def test_a_missing_file(tmp_path):
    with pytest.raises(AsgatError, match="is not a file"):
        read_array(tmp_path / "absent.npy")
