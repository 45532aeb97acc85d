"""Which rule chooses best on a small graph? Rules of the leaderboard compared on many draws by what they cost on test.

The test nodes of a graph's split are left out. Of its training and validation nodes some are drawn to play the test
nodes, and the others are divided in the proportions of the split. Candidates are trained as ``asgat fit`` trains them:
on that split, on the divisions of :func:`~asgat.leaderboard.folds.fold_splits`, and on parts of a cross-validation.
Each rule sees validation nodes alone and ends with weights of networks; its gain is how far their average is above the
best entry of the leaderboard on the nodes that play the test nodes.

    python benchmarks/choice.py train FOLDER --graphs texas,cornell --draws 0-9 --strangers ../shared/data/strangers
    python benchmarks/choice.py compare FOLDER
"""

import argparse
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
GRAPHS = "texas,cornell,wisconsin,cornell-true,chameleon-filtered,reed98,usa-airports"
OLD, PARTS, KEEP = 4, 5, 8  # divisions of fold_splits; parts of a cross-validation; candidates trained on them


# -- training ---------------------------------------------------------------------------------------------------------


def read(name: str, strangers: Path) -> Any:
    """A graph as ``asgat fit`` reads it."""
    from strangers import options_of

    from asgat.estimator.encoded_graph import encode_user_graph
    from asgat.tabular.assembly import read_graph

    with tempfile.TemporaryDirectory() as place:
        words = options_of(name, strangers, Path(place))
        given = dict(zip((word[2:] for word in words[::2]), words[1::2], strict=True))
        nodes = Path(given["nodes"]) if "nodes" in given else None
        graph = read_graph(Path(given["edges"]), nodes, given["label"], split=given.get("split"))
    return graph, encode_user_graph(graph, seed=0)


def draw_split(split: Any, y: Any, number: int) -> Any:
    """Some training and validation nodes as test nodes, the others divided as the split is, all by class."""
    from asgat.data.dataset import Split

    both = np.concatenate([split.train, split.val])
    rng = np.random.default_rng([number, len(both)])
    shuffled = rng.permutation(both)
    order = shuffled[np.argsort(y[shuffled], kind="stable")]
    total = len(both) + len(split.test)
    share = np.array([len(split.train), len(split.val), len(split.test)]) / total
    # Every node of the order by class has a place in the parts, so that each class is divided alike.
    place = (np.arange(len(order)) * 0.6180339887498949 + rng.random()) % 1.0
    part = np.searchsorted(np.cumsum(share)[:2], place, side="right")
    return Split(*(np.sort(order[part == i]) for i in range(3)))


def cross_validation(split: Any, y: Any, seed: int, rounds: int) -> list[Any]:
    from asgat.data.dataset import Split

    rng, both, found = np.random.default_rng([seed, 77]), np.concatenate([split.train, split.val]), []
    for _ in range(rounds):
        shuffled = rng.permutation(both)
        order = shuffled[np.argsort(y[shuffled], kind="stable")]
        pieces = [np.sort(order[first::PARTS]) for first in range(PARTS)]
        found += [Split(np.setdiff1d(both, piece), piece, split.test) for piece in pieces]
    return found


def train(name: str, number: int, strangers: Path, rounds: int) -> dict[str, Any]:
    import torch

    from asgat.estimator.health import examine
    from asgat.leaderboard.contest import Clock, Contest
    from asgat.leaderboard.field import PRESETS, make_field
    from asgat.leaderboard.folds import fold_splits
    from asgat.leaderboard.trial import TrialStore, Workbench
    from asgat.training.interrupt import Interrupt

    torch.set_num_threads(1)
    graph, encoded = read(name, strangers)
    data = encoded.dataset
    split = draw_split(data.splits[0], data.y, number)
    hidden = data.y.copy()
    hidden[data.splits[0].test] = -1
    data = replace(data, splits=(split,), y=hidden)
    assert not len(np.intersect1d(np.concatenate(list(split.parts().values())), encoded.dataset.splits[0].test))
    datasets = {key: replace(one, splits=(split,), y=hidden) for key, one in encoded.datasets().items()}
    health = examine(graph, encoded.dataset, encoded.encoding.class_names, encoded.notes)
    seed, given = 1000 + number, encoded.given_validation
    folds = fold_splits(split, data.y, OLD, seed, given)
    if not (given and folds[1] is split):
        folds = [*(folds if rounds > 1 else [split]), *cross_validation(split, data.y, seed, rounds)]
    everyone = ((KEEP, len(folds) - 1),)
    preset = replace(PRESETS["default"], rounds=everyone, large_rounds=everyone)
    field = make_field(data, preset, health.advised, one_way=True in datasets)
    bench, store, began = Workbench(datasets, torch.device("cpu")), TrialStore(None, "cpu", ""), time.process_time()
    with Interrupt() as interrupt:
        contest = Contest(bench, store, field, split, preset, seed, Clock(1e9), interrupt, given=given)
        contest.folds = folds
        contest.run()
    known = np.concatenate([split.train, split.val, split.test])
    trials = {key: one for key, one in sorted(contest.trials.items()) if not one.failed}
    return {
        "names": np.array([one.name for one in field]),
        "keys": np.array(list(trials)),
        "val": np.array([one.score for one in trials.values()]),
        "ended": np.array([one.ended for one in trials.values()]),
        "seconds": np.array([one.run.seconds for one in trials.values()]),
        "probability": np.stack([one.probability(bench.task(one.candidate))[known] for one in trials.values()]).astype(
            np.float16
        ),
        "truth": data.y[known],
        "folds": np.stack([np.isin(known, fold.val) for fold in folds]),
        "test": np.isin(known, split.test),
        "processor": time.process_time() - began,
    }


def train_all(given: argparse.Namespace) -> None:
    first, _, last = given.draws.partition("-")
    given.folder.mkdir(parents=True, exist_ok=True)
    for number in range(int(first), int(last or first) + 1):
        for name in given.graphs.split(","):
            file = given.folder / f"{name}-{number}.npz"
            if not file.exists():
                found = train(name, number, given.strangers, given.rounds)
                partial = file.with_suffix(".part.npz")
                np.savez_compressed(partial, **found)
                partial.rename(file)
                print(f"{file.name}: {found['processor']:.0f} s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("what", choices=("train", "compare"))
    parser.add_argument("folder", type=Path, help="with a file for every graph and draw")
    parser.add_argument("--graphs", default=GRAPHS)
    parser.add_argument("--draws", default="0-9", help="first and last")
    parser.add_argument("--strangers", type=Path, default=Path("../shared/data/strangers"))
    parser.add_argument("--rounds", type=int, default=2, help="how often the cross-validation is repeated")
    given = parser.parse_args()
    train_all(given)


if __name__ == "__main__":
    main()
