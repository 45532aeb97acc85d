from asgat.experiments.result_table import difference, mean_std, result_table


def test_text_is_aligned_left_and_numbers_right():
    table = result_table("a title", ("model", "ours"), [("gcn", "85.3"), ("mlp", "70.0")], "a caption")
    assert [column.justify for column in table.columns] == ["left", "right"]
    assert [list(column.cells) for column in table.columns] == [["gcn", "mlp"], ["85.3", "70.0"]]
    assert (table.title, table.caption) == ("a title", "a caption")


def test_scores_are_in_percent():
    assert mean_std(None) == "–"
    assert mean_std(0.8512) == "85.1"
    assert mean_std(0.8512, 0.0123) == "85.1 ± 1.2"
    assert difference(0.9, 0.85) == "+5.0"
    assert difference(0.9, None) == difference(None, 0.9) == "–"
