import json

import pytest

from asgat.errors import AsgatError
from asgat.training.run_files import BOARD, CONFIG, MODEL, RESULT, RUN_FILES, UNFINISHED, read_result


def test_names():
    assert {CONFIG, RESULT, MODEL, UNFINISHED} < set(RUN_FILES)
    assert BOARD not in RUN_FILES, "a single run has none"


def test_a_result_is_read_or_refused(tmp_path):
    (tmp_path / RESULT).write_text(json.dumps({"rows": [], "finished": True}))
    assert read_result(tmp_path) == {"rows": [], "finished": True}
    for content, words in (("{", "cannot be read as a result"), ('{"rows": 1}', "rows must be a list of objects")):
        (tmp_path / RESULT).write_text(content)
        with pytest.raises(AsgatError, match=rf"result\.json .*{words}"):
            read_result(tmp_path)
    with pytest.raises(AsgatError, match="cannot be read: No such file"):
        read_result(tmp_path / "absent")
