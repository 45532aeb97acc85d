"""How long `asgat train` takes until its first epoch: with no table, with a kept one, and with a damaged one.

python benchmarks/second_start.py pubmed --json second-start.json
python benchmarks/second_start.py FOLDER --set form=table --set order=8 --set candidates=48      # of `asgat convert`

Every start is a new process, with a cache of its own; times are from the start of the process to the first epoch.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any


def begin(dataset: str, settings: list[str], started: float) -> None:
    """Everything that `asgat train` does before the first epoch; prints the seconds."""
    from asgat.cli.options import parse_settings
    from asgat.data import load_dataset
    from asgat.disk.disk_graph import open_if_folder
    from asgat.nn.registry import model_spec
    from asgat.recipe import load_config
    from asgat.training.runner import Callbacks, run

    loaded = time.time()
    stored = open_if_folder(dataset)
    config = load_config(
        stored.name if stored else dataset, "asgat-cheb", parse_settings(settings, model_spec("asgat-cheb").config)
    )
    data = stored.to_dataset() if stored else load_dataset(dataset)

    def built(_: int) -> None:
        now = time.time()
        print(json.dumps({"seconds": now - started, "without_imports": now - loaded}), flush=True)
        os._exit(0)

    with tempfile.TemporaryDirectory() as out:
        run(data, "asgat-cheb", config, [0], out=out, callbacks=Callbacks(built=built))


def start(dataset: str, settings: list[str], cache: Path) -> dict[str, Any]:
    command = [sys.executable, __file__, dataset, "--started", str(time.time())]
    command += [part for one in settings for part in ("--set", one)]
    environment = {**os.environ, "ASGAT_CACHE_DIR": str(cache)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    figures: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return {**figures, "said": done.stderr.strip()[-300:]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset")
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--started", type=float)
    parser.add_argument("--starts", type=int, default=4, help="2 leaves out the damage")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    if options.started:
        begin(options.dataset, options.set, options.started)
        return
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        cache = Path(folder)
        for name in ("first", "second", "damaged", "after it")[: options.starts]:
            if name == "damaged":
                (value,) = cache.glob("*/value.bin")
                with value.open("r+b") as file:
                    file.seek(value.stat().st_size // 2)
                    byte = file.read(1)
                    file.seek(-1, 1)
                    file.write(bytes([byte[0] ^ 1]))
            rows.append({"start": name, **start(options.dataset, options.set, cache), "load": os.getloadavg()[0]})
            print(json.dumps(rows[-1]), flush=True)
    share = rows[1]["seconds"] / rows[0]["seconds"]
    print(f"{options.dataset}: the second start takes {share:.3f} of the first")
    if options.json:
        options.json.write_text(
            json.dumps({"dataset": options.dataset, "set": options.set, "rows": rows}, indent=2) + "\n"
        )


if __name__ == "__main__":
    main()
