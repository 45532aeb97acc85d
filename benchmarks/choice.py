"""Which rule chooses best on a small graph? Rules of the leaderboard compared on many draws by what they cost on test.

The test nodes of a graph's split are left out. Of its training and validation nodes some are drawn to play the test
nodes, and the others are divided in the proportions of the split. Candidates are trained as ``asgat fit`` trains them,
the best eight on five more divisions of the nodes. Each rule sees validation nodes alone and ends with candidates whose
networks are averaged. Its gain is how far that average is above the best entry of the leaderboard, on the nodes that
play the test nodes: above the entry that is best on average over the draws of a graph, and above the best of each draw,
which no rule could know.

    python benchmarks/choice.py train FOLDER --graphs texas,cornell --draws 0-9 --strangers ../shared/data/strangers
    python benchmarks/choice.py compare FOLDER
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
GRAPHS = "texas,cornell,wisconsin,cornell-true,chameleon-filtered,reed98,usa-airports"
KEEP, MORE = 8, 5  # candidates that are trained on more divisions, and how many of these


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


def train(name: str, number: int, strangers: Path) -> dict[str, Any]:
    import torch

    from asgat.estimator.health import examine
    from asgat.leaderboard.contest import Clock, Contest
    from asgat.leaderboard.field import PRESETS, make_field
    from asgat.leaderboard.trial import TrialStore, Workbench, to_probability
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
    rounds = ((KEEP, MORE),)
    preset = replace(PRESETS["default"], few_rounds=rounds, rounds=rounds, large_rounds=rounds)
    field = make_field(data, preset, health.advised, one_way=True in datasets)
    bench, store, began = Workbench(datasets, torch.device("cpu")), TrialStore(None, "cpu", ""), time.process_time()
    with Interrupt() as interrupt:
        contest = Contest(bench, store, field, split, preset, seed, Clock(1e9), interrupt, given=given)
        contest.run()
    known = np.concatenate([split.train, split.val, split.test])
    trials = {key: one for key, one in sorted(contest.trials.items()) if not one.failed}
    return {
        "names": np.array([one.name for one in field]),
        "keys": np.array(list(trials)),
        "val": np.array([one.score for one in trials.values()]),
        "ended": np.array([one.run.finished for one in trials.values()]),
        "seconds": np.array([one.run.seconds for one in trials.values()]),
        "probability": np.stack(
            [to_probability(one.logits(bench.task(one.candidate)))[known] for one in trials.values()]
        ).astype(np.float16),
        "truth": data.y[known],
        "folds": np.stack([np.isin(known, fold.val) for fold in contest.folds]),
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
                found = train(name, number, given.strangers)
                partial = file.with_suffix(".part.npz")
                np.savez_compressed(partial, **found)
                partial.rename(file)
                print(f"{file.name}: {found['processor']:.0f} s", flush=True)


# -- rules ------------------------------------------------------------------------------------------------------------


class Draw:
    """What :func:`train` found, as rules see it."""

    def __init__(self, file: Path) -> None:
        held = np.load(file)
        self.graph, keys = file.stem.rpartition("-")[0], [(int(n), int(fold)) for n, fold in held["keys"]]
        self.names, self.truth, self.test, self.folds = (held[key] for key in ("names", "truth", "test", "folds"))
        self.probability = dict(zip(keys, held["probability"].astype(np.float64), strict=True))
        self.val = dict(zip(keys, held["val"], strict=True))
        ended = {key for key, done in zip(keys, held["ended"], strict=True) if done}
        self.all = range(len(self.folds))
        self.finalists = [n for n in range(len(self.names)) if all((n, fold) in ended for fold in self.all)]

    def score(self, number: int, folds: Sequence[int]) -> float:
        return float(np.mean([self.val[number, fold] for fold in folds]))

    def ranked(self, alive: Sequence[int], folds: Sequence[int]) -> list[int]:
        return sorted(alive, key=lambda n: (-self.score(n, folds), n))

    def near(self, ranked: Sequence[int], folds: Sequence[int], errors: float) -> list[int]:
        """Candidates within some standard errors of the best."""
        best = self.score(ranked[0], folds)
        share, nodes = np.clip(best, 0.05, 0.95), self.folds[list(folds)].any(axis=0).sum()
        return [n for n in ranked if self.score(n, folds) >= best - errors * np.sqrt(share * (1 - share) / nodes)]

    def loss(self, numbers: Sequence[int], folds: Sequence[int]) -> float:
        """The loss of the average of candidates on the validation nodes of a fold, mean over folds."""
        found = []
        for fold in folds:
            nodes = np.flatnonzero(self.folds[fold])
            joined = np.mean([self.probability[n, fold][nodes, self.truth[nodes]] for n in numbers], axis=0)
            found.append(-np.log(np.maximum(joined, 1e-6)).mean())
        return float(np.mean(found))

    def forward(self, ranked: Sequence[int], folds: Sequence[int]) -> list[int]:
        """The rule of :func:`asgat.leaderboard.choice.choose`."""
        left = self.near(ranked, folds, 2.0)
        chosen = [left.pop(0)]
        while left:
            n = min(left, key=lambda n: self.loss([*chosen, n], folds))
            if self.loss([*chosen, n], folds) >= self.loss(chosen, folds):
                break
            chosen.append(n)
            left.remove(n)
        return chosen

    def tested(self, numbers: Sequence[int], folds: Sequence[int]) -> tuple[float, float]:
        """Accuracy in percent and log-loss of the average of all networks, on the nodes that play the test nodes."""
        joined = np.mean([self.probability[n, fold] for n in numbers for fold in folds], axis=0)[self.test]
        truth = self.truth[self.test]
        given = joined[np.arange(len(truth)), truth] / joined.sum(axis=1)
        return float(100 * (joined.argmax(axis=1) == truth).mean()), float(-np.log(np.maximum(given, 1e-9)).mean())

    def entries(self) -> dict[str, float]:
        """The accuracy of every row: of its best candidate, the network on the split itself."""
        found = {}
        for name in dict.fromkeys(self.names.tolist()):
            usable = [n for n in range(len(self.names)) if self.names[n] == name and (n, 0) in self.val]
            if usable:
                done = [(n in self.finalists, self.score(n, self.all if n in self.finalists else [0])) for n in usable]
                found[name] = self.tested([usable[max(range(len(usable)), key=done.__getitem__)]], [0])[0]
        return found


Rule = Callable[[Draw], tuple[Sequence[int], Sequence[int]]]


def four(rule: Callable[[Draw, list[int], Sequence[int]], Sequence[int]]) -> Rule:
    """A rule for the best four on four divisions, which were the best on two."""

    def call(draw: Draw) -> tuple[Sequence[int], Sequence[int]]:
        alive = draw.ranked(draw.ranked(draw.finalists, [0])[:KEEP], [0, 1])[:4]
        return rule(draw, draw.ranked(alive, range(4)), range(4)), range(4)

    return call


def eight(rule: Callable[[Draw, list[int], Sequence[int]], Sequence[int]]) -> Rule:
    """A rule for the best eight on all divisions."""

    def call(draw: Draw) -> tuple[Sequence[int], Sequence[int]]:
        alive = draw.ranked(draw.finalists, [0])[:KEEP]
        return rule(draw, draw.ranked(alive, draw.all), draw.all), draw.all

    return call


OF_FINALISTS: dict[str, Callable[[Draw, list[int], Sequence[int]], Sequence[int]]] = {
    "the best": lambda draw, ranked, folds: ranked[:1],
    "the cheapest within half a standard error": lambda draw, ranked, folds: [min(draw.near(ranked, folds, 0.5))],
    "the average of all within one standard error": lambda draw, ranked, folds: draw.near(ranked, folds, 1.0),
    "the average of all": lambda draw, ranked, folds: ranked,
    "the average that lowers the loss": lambda draw, ranked, folds: draw.forward(ranked, folds),
}


def compare(given: argparse.Namespace) -> None:
    draws = [Draw(file) for file in sorted(given.folder.glob("*[0-9].npz"))]
    graphs = np.array([draw.graph for draw in draws])
    entries = [draw.entries() for draw in draws]
    best = np.zeros(len(draws))
    for graph in np.unique(graphs):
        own = np.flatnonzero(graphs == graph)
        names = set.intersection(*(set(entries[i]) for i in own))
        name = max(sorted(names), key=lambda name: np.mean([entries[i][name] for i in own]))
        best[own] = [entries[i][name] for i in own]
        print(f"{graph}: {len(own)} draws, best entry {name} {best[own].mean():.1f}")
    highest = np.array([max(one.values()) for one in entries])
    for plan, place in (("four on four divisions", four), ("eight on all", eight)):
        for name, rule in OF_FINALISTS.items():
            test, loss = np.array([draw.tested(*place(rule)(draw)) for draw in draws]).T
            gain = test - best
            error = gain.std(ddof=1) / np.sqrt(len(gain)) if len(gain) > 1 else float("nan")
            each = ", ".join(f"{graph} {gain[graphs == graph].mean():+.1f}" for graph in np.unique(graphs))
            above = f"above the best entry {gain.mean():+.2f} ± {error:.2f} ({each}), "
            above += f"above the best of each draw {np.mean(test - highest):+.2f}"
            print(f"{plan}, {name}: {test.mean():.2f}, log-loss {loss.mean():.3f}; {above}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("what", choices=("train", "compare"))
    parser.add_argument("folder", type=Path, help="with a file for every graph and draw")
    parser.add_argument("--graphs", default=GRAPHS)
    parser.add_argument("--draws", default="0-9", help="first and last")
    parser.add_argument("--strangers", type=Path, default=Path("../shared/data/strangers"))
    given = parser.parse_args()
    train_all(given) if given.what == "train" else compare(given)


if __name__ == "__main__":
    main()
