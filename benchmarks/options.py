"""The effect of each option of asgat-plus on the validation score, all else equal. Test nodes are not used.

python benchmarks/options.py --datasets texas,cora --device cuda --json options.json
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from asgat.config import OPTIONS
from asgat.data import load_dataset
from asgat.recipe import load_config
from asgat.tuning.evaluation import Evaluation

NUMBERS = {"gain": (1.0, 0.3), "members": (1, 5), "similar": (0, 2)}  # the values without and with it
HOMOPHILIC = ("cora", "citeseer", "pubmed")
EIGHT = "cora,citeseer,pubmed,chameleon,squirrel,wisconsin,cornell,texas"


def measure(name: str, options: list[str], runs: int, seed: int, device: str) -> list[dict[str, Any]]:
    """The recipe's settings, and the same with one option switched."""
    dataset = load_dataset(name)
    config = load_config(name, "asgat-plus")
    evaluation = Evaluation(dataset, "asgat-plus", range(runs), seed, device)
    kept = evaluation(config)
    rows = []
    for option in options:
        without_it, with_it = NUMBERS.get(option, (False, True))
        has = getattr(config, option) != without_it
        changes: dict[str, Any] = {option: without_it if has else with_it}
        if option == "propagate" and not has:  # a value that suits the graph: an average, or no change
            changes["alpha"] = 0.1 if name in HOMOPHILIC else 0.9
        switched = evaluation(config.replace(**changes))
        before, after = (switched, kept) if has else (kept, switched)
        rows.append(
            {
                "dataset": name,
                "option": option,
                "in_recipe": has,
                "without": before.mean,
                "with": after.mean,
                "gain": after.mean - before.mean,
                "without_std": before.std,
                "with_std": after.std,
                "runs": runs,
                "seed": seed,
                "device": device,
            }
        )
        figures = [f"{100 * value:+6.1f}" for value in (before.mean, after.mean, rows[-1]["gain"])]
        print(f"{name:10} {option:10}", *figures, flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--datasets", default=EIGHT)
    parser.add_argument("--options", default=",".join([*OPTIONS, *NUMBERS]))
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for name in given.datasets.split(","):
        rows += measure(name, given.options.split(","), given.runs, given.seed, given.device)
        if given.json:
            given.json.write_text(json.dumps({"rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
