import json

from torch.distributed.elastic.multiprocessing.errors import ChildFailedError, ProcessFailure

from asgat.distributed.launcher import ERROR_FILE, report_to_launcher


def test_the_report_of_torchrun_ends_with_the_sentence(monkeypatch, tmp_path):
    file = tmp_path / "error.json"
    monkeypatch.setenv(ERROR_FILE, str(file))
    report_to_launcher("gcn cannot be trained in parts.")
    assert json.loads(file.read_text())["message"]["message"] == "gcn cannot be trained in parts."
    failure = ProcessFailure(local_rank=0, pid=1, exitcode=2, error_file=str(file))
    lines = str(ChildFailedError("asgat", {0: failure})).strip().splitlines()
    assert lines[-2].strip() == "traceback : gcn cannot be trained in parts."
    assert set(lines[-1]) == {"="}


def test_without_torchrun_nothing_is_written(monkeypatch, tmp_path):
    monkeypatch.delenv(ERROR_FILE, raising=False)
    report_to_launcher("nobody reads it")
    monkeypatch.setenv(ERROR_FILE, str(tmp_path / "missing" / "error.json"))
    report_to_launcher("nobody can")
