"""A whole leaderboard: repeats, the ensemble, the folder."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from tests.leaderboard.conftest import make_small_field

from asgat.data.digest import dataset_digest
from asgat.data.splits import stratified_splits
from asgat.errors import AsgatError
from asgat.estimator.run_list import summarise_run
from asgat.leaderboard.board import (
    BoardFolder,
    BoardSettings,
    _notes,
    board_content,
    finish,
    predict_test_nodes,
    run_board,
    score_figures,
)
from asgat.leaderboard.field import GUESSING, Candidate
from asgat.leaderboard.standings import AVERAGE
from asgat.leaderboard.trial import logits_of, to_probability
from asgat.training.metrics import majority_share, micro_f1
from asgat.training.run_directory import OtherSettingsError
from asgat.training.run_files import BOARD

pytestmark = pytest.mark.usefixtures("small_field")


@pytest.fixture
def settings(blocks):
    return BoardSettings("quick", "micro_f1", 2, 0, dataset_digest(blocks))


@pytest.fixture(scope="module")
def done(blocks):
    """A leaderboard and its chosen models."""
    monkeypatch = pytest.MonkeyPatch()
    make_small_field(monkeypatch)
    settings = BoardSettings("quick", "micro_f1", 2, 0, dataset_digest(blocks))
    yield run(blocks, settings)
    monkeypatch.undo()


def run(blocks, settings, **more):
    return run_board({False: blocks}, settings, {}, torch.device("cpu"), **more)


def without_time(board):
    return json.dumps([{**row, "seconds": 0} for row in board.to_dict()["rows"]])


def test_rows_are_means_over_repeats_and_the_chosen_is_an_average(blocks, done):
    board, finals = done
    assert {row.name for row in board.rows} == {"logistic regression", "gcn", "linkx", GUESSING}
    assert board.rows[-1].name == GUESSING
    assert [row.val for row in board.rows[:-1]] == sorted((row.val for row in board.rows[:-1]), reverse=True)
    assert sum(row.chosen for row in board.rows) >= board.repeats == len(finals) == 2
    tests = [predict_test_nodes(final, split) for final, split in zip(finals, blocks.splits, strict=True)]
    expected = np.mean([micro_f1(one.truth, one.probability.argmax(axis=1)) for one in tests])
    assert board.chosen.test["micro_f1"] == pytest.approx(expected)
    assert board.chosen.interval[0] < expected < board.chosen.interval[1]
    for final, split in zip(finals, blocks.splits, strict=True):
        assert {part.config.members for part in (final, *final.partners)} == {3}, "a network of every fold"
        assert final.result.micro_f1 == micro_f1(
            blocks.y[split.test], predict_test_nodes(final, split).probability.argmax(axis=1)
        )
    shares = [majority_share(blocks.y[split.train], blocks.y[split.test]) for split in blocks.splits]
    assert board.rows[-1].test["micro_f1"] == pytest.approx(np.mean(shares))
    assert [sentence.split(":")[0] for sentence in board.sentences] == [
        "Better than guessing",
        "It is not sure that the graph helps",
    ]
    figures = score_figures("micro_f1", tests)
    assert figures is not None
    assert figures["scores"]["micro_f1"] == pytest.approx(expected)
    assert figures["guessing"]["micro_f1"] == pytest.approx(np.mean(shares))
    assert 0 < figures["gain"][0] < expected - np.mean(shares) < figures["gain"][1]


def test_varied_predictions_of_noise_are_not_better_than_guessing(blocks, settings):
    y = np.random.default_rng(0).permutation(blocks.y)
    noise = replace(blocks, y=y, splits=stratified_splits(y, 2, 0, 0.6, 0.2), metric="macro_f1")
    board, _ = run(noise, replace(settings, metric="macro_f1"))
    guessing = board.rows[-1]
    assert board.chosen.interval[0] > 1 / 3, "of macro-F1, that of the largest class of two"
    assert (guessing.val, guessing.test["macro_f1"]) == pytest.approx((0.5, 0.5), abs=0.02)
    assert board.sentences[0].startswith("Not significantly better than guessing: ")
    assert board.sentences[1].startswith("It is not sure that the graph helps: ")


@pytest.fixture(scope="module")
def mixed(blocks):
    """A leaderboard of one repeat whose finalists all count as equally good."""
    one = replace(blocks, splits=blocks.splits[:1])
    with pytest.MonkeyPatch.context() as monkeypatch:
        make_small_field(monkeypatch)
        monkeypatch.setattr("asgat.leaderboard.contest.choose", lambda ranked, *_: ranked)
        return run(one, BoardSettings("quick", "micro_f1", 1, 0, dataset_digest(one)))


def test_models_that_are_equally_good_are_averaged(blocks, mixed):
    board, (final,) = mixed
    parts = [final, *final.partners]
    assert len(parts) == 2, "both candidates of the last round"
    split = blocks.splits[0]
    each = [to_probability(logits_of(part.task, part.config, part.result.state)) for part in parts]
    np.testing.assert_allclose(
        predict_test_nodes(final, split).probability, np.mean(each, axis=0)[split.test], atol=1e-6
    )
    predicted = np.mean(each, axis=0).argmax(axis=1)
    assert final.result.micro_f1 == micro_f1(blocks.y[split.test], predicted[split.test])
    assert board.chosen.test["micro_f1"] == final.result.micro_f1
    assert board.chosen.val == final.result.val_score < 1.0
    assert board.members == sum(part.config.members for part in parts) == 6
    assert board.averaged == list(dict.fromkeys(part.candidate.name for part in parts))
    assert [row.chosen for row in board.rows] == [int(row.name in board.averaged) for row in board.rows]
    assert (board.chosen.name == AVERAGE) == (len(board.averaged) > 1)
    assert AVERAGE not in [row.name for row in board.rows], "rows are single models"


def test_a_note_names_the_repeats_it_is_true_of(make_contest):
    contests = [make_contest(), make_contest()]
    for contest in contests:
        contest._train("first epochs", [(0, 0)], 1e12, 2)
    contests[1]._train("first epochs", [(1, 0)], 1e12, 1)
    assert _notes(contests, "logistic regression", [0, 0]) == "stopped after 2 epochs"
    found = _notes(contests, "gcn", [None, 1])
    assert found == "in repeat 1, not tried: no time was left; in repeat 2, stopped after 1 epoch"
    assert _notes(contests[:1], "gcn", [None]) == "not tried: no time was left"


def test_what_can_be_explained_comes_first_and_other_directions_are_left_out(make_contest, small_field):
    attends = Candidate("asgat-plus", "asgat-plus", {"epochs": 3, "k": 3, "order": 3, "heads": 2, "hidden": 4})
    filters = Candidate("filters", "asgat-deep", {"epochs": 3, "channels": "filters", "order": 3, "hidden": 4})
    contest = make_contest([*small_field[:2], attends, filters])
    contest._train("to the end", [(0, 0), (1, 0), (2, 0), (3, 0)], 1e12)
    final = finish(contest, [1, 3, 2, 0])
    assert [part.candidate.model for part in (final, *final.partners)] == ["asgat-plus", "gcn", "asgat-deep", "mlp"]
    assert finish(contest, [1, 3, 0]).candidate is filters
    assert finish(contest, [1, 0]).candidate.model == "gcn"
    contest.candidates = [small_field[0], replace(small_field[1], directed=True), attends]
    assert [part.candidate.model for part in finish(contest, [0, 1, 2]).partners] == ["mlp"]
    assert finish(contest, [0]).partners == ()


def test_the_average_is_validated_on_nodes_its_networks_left_out(done):
    for final in done[1]:
        assert final.result.val_score < 1.0
        assert len(final.result.history) == final.result.epochs


@pytest.mark.parametrize("metric", ["macro_f1", "roc_auc", "log_loss"])
def test_other_metrics_decide(blocks, settings, metric):
    one = replace(blocks, metric=metric, splits=blocks.splits[:1])
    board, finals = run(one, replace(settings, metric=metric, repeats=1))
    assert board.metric == metric
    assert board.chosen.val == pytest.approx(np.mean([final.result.val_score for final in finals]))
    low, high = board.chosen.interval
    assert low <= board.chosen.test[metric] <= high


def test_a_killed_leaderboard_ends_as_one_that_was_not(blocks, settings, done, tmp_path):
    whole, _ = done

    class Killed(Exception):
        pass

    calls = []

    def kill(name, done, total, epoch):
        calls.append(name)
        if len(calls) == 90:
            raise Killed

    folder = BoardFolder(tmp_path)
    with pytest.raises(Killed):
        run(blocks, settings, folder=folder, report=kill)
    held = folder.begin(settings)
    assert held["seconds"] > 0
    assert not held["finished"]
    board, _ = run(blocks, settings, folder=folder, used=held["seconds"])
    assert without_time(board) == without_time(whole)
    assert board.seconds > held["seconds"], "the time of the first start counts"


def test_a_folder_of_other_data_or_settings_is_refused(settings, tmp_path):
    folder = BoardFolder(tmp_path)
    assert folder.begin(settings)["seconds"] == 0
    folder.write(settings, 3.0, "blocks")
    assert folder.begin(replace(settings, minutes=9.0))["seconds"] == 3.0
    assert summarise_run(tmp_path).dataset == "blocks"
    with pytest.raises(OtherSettingsError, match="holds a leaderboard of other data"):
        folder.begin(replace(settings, data="other"))
    with pytest.raises(OtherSettingsError, match=r"other settings \(metric, seed\)"):
        folder.begin(replace(settings, metric="macro_f1", seed=5))
    assert folder.begin(replace(settings, seed=5), fresh=True)["seconds"] == 0
    (tmp_path / "config.toml").write_text("")
    with pytest.raises(OtherSettingsError, match="holds a run of a single model"):
        folder.begin(settings)


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"settings": 1, "seconds": 0}', b"[" * 100_000])
def test_a_damaged_file_is_refused(settings, tmp_path, content):
    (tmp_path / BOARD).write_bytes(content)
    with pytest.raises(AsgatError, match="is not a leaderboard"):
        BoardFolder(tmp_path).begin(settings)


def test_the_file_holds_the_board(settings, done):
    board, _ = done
    held = json.loads(board_content(settings.to_dict(), board.seconds, board))
    assert held["finished"]
    assert held["settings"]["repeats"] == 2
    assert [row["name"] for row in held["rows"]] == [row.name for row in board.rows]
