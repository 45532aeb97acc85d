from asgat.disk.journal import FILE, Journal


def test_what_is_set_is_there_for_the_next_process(tmp_path):
    first = Journal(tmp_path, "a")
    assert not first.begun
    first.set(sorted=3, sizes=[1, 2])
    again = Journal(tmp_path, "a")
    assert again.begun
    assert (again.get("sorted"), again.get("sizes"), again.get("ordered", False)) == (3, [1, 2], False)
    again.remove()
    assert list(tmp_path.iterdir()) == []


def test_work_on_something_else_and_a_damaged_journal_start_again(tmp_path):
    Journal(tmp_path, "a").set(sorted=3)
    assert not Journal(tmp_path, "b").begun
    for content in ("{", "[]"):
        (tmp_path / FILE).write_text(content)
        assert not Journal(tmp_path, "a").begun


def test_without_a_folder_nothing_is_written():
    journal = Journal()
    journal.set(sorted=1)
    journal.remove()
    assert journal.get("sorted") == 1
