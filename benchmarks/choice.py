"""Which rule chooses best on small graphs? Rules of the leaderboard compared on many splits by what they cost on test.

On every split the ten best candidates are trained on nine divisions of the training and validation nodes. Each rule
then sees validation scores alone and chooses; its regret is how far the test score of its choice, the average of its
networks, is below that of the best entry. No rule should be chosen on a split that is reported elsewhere: split 0 of
texas, which ``strangers.py`` measures, is left out by default.

    python benchmarks/choice.py --datasets texas,cornell,wisconsin --splits 1-9 --jobs 8 --out choice.json
"""

import argparse
import json
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

KEEP, FOLDS = 10, 9
Rounds = Sequence[tuple[int, int]]


def train_split(dataset: str, number: int) -> dict[str, Any]:
    """Validation scores and test hits of every candidate and division on one split, as plain lists."""
    import torch

    from asgat.data import load_dataset
    from asgat.leaderboard.contest import Clock, Contest
    from asgat.leaderboard.field import PRESETS, make_field
    from asgat.leaderboard.trial import TrialStore, Workbench
    from asgat.training.interrupt import Interrupt

    torch.set_num_threads(1)
    data = load_dataset(dataset)
    split = data.splits[number]
    data = replace(data, splits=(split,))
    all_rounds = ((KEEP, FOLDS - 1),)
    preset = replace(PRESETS["default"], rounds=all_rounds, large_rounds=all_rounds)
    field = make_field(data, preset, {"k": 9, "order": 12})
    bench, store = Workbench({False: data}, torch.device("cpu")), TrialStore(None, "cpu", "")
    with Interrupt() as interrupt:
        contest = Contest(bench, store, field, split, preset, 1000 + number, Clock(1e9), interrupt, given=True)
        contest.run()
    trials = [
        {
            "candidate": n,
            "fold": fold,
            "ended": trial.ended,
            "val": trial.score,
            "test": trial.probability(bench.task(field[n]))[split.test].round(5).tolist(),
        }
        for (n, fold), trial in contest.trials.items()
        if not trial.failed
    ]
    sizes = [len(fold.val) for fold in contest.folds]
    return {
        "dataset": dataset,
        "split": number,
        "names": [one.name for one in field],
        "truth": data.y[split.test].tolist(),
        "nodes": len(split.train) + len(split.val),
        "folds": sizes,
        "trials": trials,
    }


class Trained:
    """What :func:`train_split` found, as rules see it."""

    def __init__(self, found: dict[str, Any]) -> None:
        self.names, self.truth, self.nodes = found["names"], np.array(found["truth"]), found["nodes"]
        self.val = {(t["candidate"], t["fold"]): t["val"] for t in found["trials"]}
        self.test = {(t["candidate"], t["fold"]): np.array(t["test"]) for t in found["trials"]}
        self.folds, self.key = found["folds"], (found["dataset"], found["split"])
        ended = {(t["candidate"], t["fold"]) for t in found["trials"] if t["ended"]}
        numbers = sorted({n for n, _ in self.val})
        self.finalists = [n for n in numbers if all((n, fold) in ended for fold in range(FOLDS))]

    def score(self, number: int, folds: Sequence[int]) -> float:
        return float(np.mean([self.val[number, fold] for fold in folds]))

    def accuracy(self, members: Sequence[tuple[int, int]]) -> float:
        probability = np.mean([self.test[member] for member in members], axis=0)
        return float(100 * (probability.argmax(axis=1) == self.truth).mean())

    def best_entry(self) -> float:
        """The test score of the best row: in each, the network on the split itself of its best candidate."""
        best: dict[str, tuple[tuple[bool, float], int]] = {}
        for n in sorted({n for n, _ in self.val}):
            done = n in self.finalists
            rank = done, self.score(n, range(FOLDS) if done else [0])
            best[self.names[n]] = max(best.get(self.names[n], (rank, n)), (rank, n), key=lambda pair: pair[0])
        return max(self.accuracy([(n, 0)]) for _, n in best.values())

    def standard_error(self, score: float, nodes: int) -> float:
        share = float(np.clip(score, 0.05, 0.95))
        return float(np.sqrt(share * (1 - share) / nodes))


def choose(trained: Trained, rounds: Rounds, near: float, blend: int = 1) -> list[tuple[int, int]]:
    """The networks that rounds of (candidates, more divisions) end with: of the cheapest of those within ``near``
    standard errors of the best, or of the ``blend`` best of these."""
    alive, done = trained.finalists, 1
    for keep, more in rounds:
        alive = sorted(alive, key=lambda n: (-trained.score(n, range(done)), n))[:keep]
        done += more
    scores = {n: trained.score(n, range(done)) for n in alive}
    best = max(scores.values())
    error = trained.standard_error(best, min(trained.nodes, sum(trained.folds[:done])))
    equal = [n for n in alive if scores[n] >= best - near * error]
    taken = [min(equal)] if blend == 1 else sorted(equal, key=lambda n: -scores[n])[:blend]
    return [(n, fold) for n in taken for fold in range(done)]


def make_rules() -> dict[str, Callable[[Trained], list[tuple[int, int]]]]:
    plans: dict[str, Rounds] = {
        "4 divisions (8, 4)": ((8, 1), (4, 2)),
        "9 divisions (8, 4)": ((8, 2), (4, 6)),
        "9 divisions (10)": ((10, 8),),
    }
    rules = {}
    for (name, rounds), near, blend in product(plans.items(), (0.0, 0.25, 0.5, 1.0), (1, 3)):
        kind = "cheapest" if blend == 1 else f"average of {blend}"
        rules[f"{name}, {kind} within {near}"] = lambda t, r=rounds, e=near, b=blend: choose(t, r, e, b)
    return rules


def compare(found: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Mean test score and regret of every rule, with the standard error of the mean regret over splits."""
    trained = [Trained(one) for one in found]
    best, rows = np.array([one.best_entry() for one in trained]), []
    for name, rule in make_rules().items():
        test = np.array([one.accuracy(rule(one)) for one in trained])
        error = (best - test).std(ddof=1) / np.sqrt(len(test)) if len(test) > 1 else float("nan")
        rows.append({"rule": name, "test": test.mean(), "regret": (best - test).mean(), "error": float(error)})
        print(f"{name:48}{test.mean():6.2f}  regret {rows[-1]['regret']:5.2f} ± {error:.2f}", flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--datasets", default="texas,cornell,wisconsin")
    parser.add_argument("--splits", default="1-9", help="first and last")
    parser.add_argument("--jobs", type=int, default=1, help="splits trained at the same time")
    parser.add_argument("--out", type=Path, help="JSON file with everything; what is in it is not trained again")
    given = parser.parse_args()
    first, _, last = given.splits.partition("-")
    found = json.loads(given.out.read_text())["splits"] if given.out and given.out.exists() else []
    known = {(one["dataset"], one["split"]) for one in found}
    wanted = [(name, i) for i in range(int(first), int(last or first) + 1) for name in given.datasets.split(",")]
    wanted = [key for key in wanted if key not in known]
    with ProcessPoolExecutor(given.jobs, get_context("spawn")) as pool:
        for one in pool.map(train_split, *zip(*wanted, strict=True)) if wanted else ():
            found.append(one)
            print(f"{one['dataset']} {one['split']} is trained", flush=True)
            if given.out:
                given.out.write_text(json.dumps({"splits": found}))
    rows = compare(found)
    if given.out:
        given.out.write_text(json.dumps({"rules": rows, "splits": found}))


if __name__ == "__main__":
    main()
