from asgat.estimator.verbosity import EVERY, board_lines, training_lines
from asgat.training.run_state import Epoch


def lines(capsys, report, calls):
    for call in calls:
        report(*call)
    return capsys.readouterr().out.splitlines()


def test_epochs_of_a_training(capsys):
    epochs = [(0, Epoch(0, epoch, 0.5, 0.75, 0.875)) for epoch in range(1, 2 * EVERY + 1)]
    assert training_lines(0).progress is None
    expected = [f"epoch {epoch}: train loss 0.5000, val loss 0.7500, val score 0.8750" for epoch in (EVERY, 2 * EVERY)]
    assert lines(capsys, training_lines(1).progress, epochs) == expected
    assert len(lines(capsys, training_lines(2).progress, epochs)) == 2 * EVERY


def test_rounds_of_a_leaderboard(capsys):
    epoch = Epoch(0, 3, 0.5, 0.75, 0.875)
    calls = [("first epochs", done, 3, own) for done in range(4) for own in (None, epoch)] + [("folds", 0, 1, None)]
    assert board_lines(0) is None
    expected = ["first epochs: 0 of 3 trained", "first epochs: 3 of 3 trained", "folds: 0 of 1 trained"]
    assert lines(capsys, board_lines(1), calls) == expected
    assert len(lines(capsys, board_lines(2), calls)) == 5
