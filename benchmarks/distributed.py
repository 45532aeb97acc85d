"""Training on several ranks: the numbers of `docs/scale-measurements.md`, one command each.

python benchmarks/distributed.py parity --datasets cora,chameleon,50000 --ranks 2,4 --json parity.json
python benchmarks/distributed.py parity --model asgat-deep --datasets cora,citeseer,squirrel-directed,50000 --shift 0
python benchmarks/distributed.py make 2000000 --degree 20 --out big        # a block model as files
python benchmarks/distributed.py scale --nodes 200000,2000000 --ranks 2 --json scale-ranks.json
python benchmarks/distributed.py scale --model asgat-deep --only prepare     # graphs and tables, on all cores
taskset -c 0,1 python benchmarks/distributed.py scale --model asgat-deep --only train --plan-for 20 --json deep.json
python benchmarks/distributed.py kill --times 10 --json kill.json       # or with --model asgat-deep
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from asgat.bench import scale
from asgat.bench.scale import exponent

SETTINGS = {**scale.SETTINGS, "asgat-deep": {**scale.SETTINGS["asgat-deep"], "order": 6, "k": 5, "candidates": 32}}

# -- parity: ranks against one process --------------------------------------------------------------------------------


def parity_config(name: str, model: str, epochs: int, given: list[str]) -> Any:
    from asgat.cli.options import parse_settings
    from asgat.nn.registry import make_config, model_spec
    from asgat.recipe import load_config

    plain: dict[str, Any] = dict(epochs=epochs, patience=epochs, dropout=0.0, form="table", max_restarts=0, members=1)
    plain |= parse_settings(given, model_spec(model).config)
    if name.isdecimal():
        return make_config(model, **{**SETTINGS[model], **plain})
    return load_config(name, model, plain)


def parity_data(name: str) -> Any:
    from asgat.data import contextual_sbm, load_dataset

    if name.isdecimal():
        return contextual_sbm(num_nodes=int(name), mean_degree=10.0, num_features=64, seed=0)
    return load_dataset(name)


def parity_rank(
    rank: int, ranks: int, name: str, model: str, config: Any, precision: str, port: int, file: str
) -> None:
    """One rank of a comparison; rank 0 writes the result."""
    import torch

    from asgat.distributed.process_group import Group
    from asgat.distributed.shard import InMemory
    from asgat.distributed.trainer import run_distributed

    torch.set_num_threads(1)
    os.environ.update(RANK=str(rank), WORLD_SIZE=str(ranks), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    group = Group.join()
    with group.watched():
        source = InMemory(parity_data(name), config)
        result = run_distributed(source, model, config, group, [0], dtype=getattr(torch, precision))
    if group.first:
        Path(file).write_text(json.dumps(result))
    group.close()


def parity(options: argparse.Namespace) -> dict[str, Any]:
    """Losses of ranks compared with one process and, for scale, one process with initial weights ``shift`` from its."""
    import torch
    from torch import multiprocessing

    from asgat.nn.registry import model_spec
    from asgat.training.inputs import make_inputs
    from asgat.training.loop import train
    from asgat.training.runner import model_sizes

    rows = []
    model, precision, shift = options.model, options.precision, options.shift
    dtype = getattr(torch, precision)
    spec = model_spec(model)
    for name in options.datasets.split(","):
        data = parity_data(name)
        config = parity_config(name, model, options.epochs, options.set)
        x, operator = make_inputs(data, model, config, torch.device("cpu"))
        inputs = x.to(dtype=dtype), operator.to(dtype=dtype)

        def build(shift: float, config: Any, data: Any = data) -> Any:
            net = spec.make(config, *model_sizes(data).values()).to(dtype)
            draw = torch.Generator().manual_seed(1)
            with torch.no_grad():
                for weight in net.parameters():
                    weight.mul_(1 + shift * torch.randn(weight.shape, dtype=dtype, generator=draw))
            return net

        alone, *moved = (
            np.array([[e.train_loss, e.val_loss] for e in outcome.history])
            for outcome in (
                train(partial(build, by), inputs, torch.from_numpy(data.y), data.splits[0], config)
                for by in ([0.0, shift] if shift else [0.0])
            )
        )
        whole, features = (part.nbytes / 2**20 for part in (operator.table, inputs[0]))
        itself = float(np.abs(moved[0] - alone).max()) if moved else None
        print(f"{name}, {precision}: one process shifted by {shift:g} differs by {itself}", flush=True)
        del inputs, operator, x
        for count in options.ranks:
            with tempfile.TemporaryDirectory() as folder:
                file = str(Path(folder) / "result.json")
                port = random.randint(20_000, 40_000)
                arguments = count, name, model, config, precision, port, file
                spawn: Any = multiprocessing.spawn  # type: ignore[attr-defined]
                spawn(parity_rank, arguments, nprocs=count)
                result = json.loads(Path(file).read_text())
            parts = np.array([[e["train_loss"], e["val_loss"]] for e in result["history"]])
            tables, held = ([part[key] for part in result["rows"][0]["ranks"]] for key in ("table_mb", "features_mb"))
            row = {
                "dataset": name,
                "model": model,
                "ranks": count,
                "epochs": len(parts),
                "precision": precision,
                "settings": options.set,
                "largest_difference": float(np.abs(parts - alone).max()),
                "one_process_moved": itself,
                "moved_by": shift,
                "table_mb": whole,
                "table_mb_per_rank": tables,
                "largest_share_times_ranks": max(tables) / whole * count,
                "features_mb": features,
                "features_mb_per_rank": held,
                "largest_features_times_ranks": max(held) / features * count,
                "needed_rows": [part["needed_rows"] for part in result["rows"][0]["ranks"]],
            }
            rows.append(row)
            print(
                f"{name}, {count} ranks, {precision}: losses of {len(parts)} epochs differ by at most "
                f"{row['largest_difference']:.1e}; largest table {row['largest_share_times_ranks']:.3f} × 1/ranks, "
                f"largest features {row['largest_features_times_ranks']:.3f} × 1/ranks",
                flush=True,
            )
    return {"rows": rows}


# -- a large block model, converted and trained -----------------------------------------------------------------------


def make(nodes: int, degree: float, out: Path, features: int = 64, classes: int = 2, homophily: float = 0.2) -> None:
    """Edges, features and labels of a block model as .npy files; class of node v: v mod classes. Bounded memory."""
    out.mkdir(parents=True)
    rng = np.random.default_rng(0)
    count, step = round(nodes * degree / 2), 1 << 20
    edges = np.lib.format.open_memmap(out / "edges.npy", mode="w+", dtype=np.int32, shape=(2, count))
    each = nodes // classes
    for start in range(0, count, step):
        size = min(step, count - start)
        first = rng.integers(each * classes, size=size)
        other = (first + rng.integers(1, classes, size=size)) % classes
        label = np.where(rng.random(size) < homophily, first % classes, other)
        edges[0, start : start + size] = first
        edges[1, start : start + size] = rng.integers(each, size=size) * classes + label
    edges.flush()
    x = np.lib.format.open_memmap(out / "x.npy", mode="w+", dtype=np.float32, shape=(nodes, features))
    means = rng.choice(np.array([-1, 1], dtype=np.float32), size=(classes, features))
    for start in range(0, nodes, step):
        size = min(step, nodes - start)
        labels = np.arange(start, start + size) % classes
        x[start : start + size] = rng.standard_normal((size, features), dtype=np.float32) + 0.12 * means[labels]
    x.flush()
    np.save(out / "y.npy", np.arange(nodes) % classes)


def watch_memory(process: subprocess.Popen[Any], found: dict[str, float]) -> None:
    """The peak of the memory of a process and its children: what must be there, and that with mapped files."""
    found |= {"anonymous_mb": 0.0, "resident_mb": 0.0}
    while process.poll() is None:
        anonymous = resident = 0
        for pid in [process.pid, *children(process.pid)]:
            try:
                text = Path(f"/proc/{pid}/smaps_rollup").read_text()  # pages that processes share are divided
            except OSError:
                continue
            sizes = {line.split(":")[0]: int(line.split()[1]) for line in text.splitlines()[1:]}
            anonymous += sizes.get("Pss_Anon", 0) + sizes.get("Pss_Shmem", 0)
            resident += sizes.get("Pss", 0)
        found["anonymous_mb"] = max(found["anonymous_mb"], anonymous / 1024)
        found["resident_mb"] = max(found["resident_mb"], resident / 1024)
        time.sleep(0.2)


def launch(ranks: int, plan_for: float | None = None) -> list[str]:
    """The command of torchrun on this machine, on a free port; see :func:`with_memory`."""
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks)]
    return [*torchrun, *(["-m", "asgat"] if plan_for is None else [__file__, "with-memory", str(plan_for)])]


def with_memory(gib: float, arguments: list[str]) -> None:
    """The command line of asgat as on an idle machine with so much memory: it plans with no more than that."""
    from asgat import memory
    from asgat.cli import main

    found = memory._machine_memory
    others = (found() or 0) - int(gib * 2**30)  # what this machine has more
    memory._machine_memory = lambda: max(0, (found() or 0) - max(0, others))
    sys.argv = ["asgat", *arguments]
    main()


def children(pid: int) -> list[int]:
    try:
        direct = [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []
    return direct + [grandchild for child in direct for grandchild in children(child)]


def loopback_mb() -> float:
    """Mebibytes sent over the loopback device since the machine was started."""
    lines = Path("/proc/net/dev").read_text().splitlines()
    return next(int(line.split(":")[1].split()[0]) for line in lines if line.strip().startswith("lo:")) / 2**20


@contextlib.contextmanager
def running(command: list[str], threads: int | None = 1, **options: Any) -> Iterator[subprocess.Popen[str]]:
    """A process on some threads (None: as many as it likes); it and its children have ended after the body."""
    environment = {**os.environ, **({} if threads is None else {"OMP_NUM_THREADS": str(threads)})}
    process = subprocess.Popen(command, env=environment, text=True, **options)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.terminate()  # a launcher passes it on
            process.wait()


def timed(command: list[str], threads: int | None = 1) -> dict[str, Any]:
    """Runs a command; returns its seconds, peak memory and traffic, including its children."""
    found: dict[str, float] = {}
    started, before = time.perf_counter(), loopback_mb()
    with running(command, threads) as process:
        thread = threading.Thread(target=watch_memory, args=(process, found))
        thread.start()
        code = process.wait()
        thread.join()
    if code:
        raise SystemExit(f"{' '.join(command)} ended with {code}")
    return {"seconds": time.perf_counter() - started, "sent_mb": loopback_mb() - before, **found}


def scale(options: argparse.Namespace) -> dict[str, Any]:
    """Makes, converts and trains; returns total memory, seconds of an epoch, and the exponent of its growth.

    ``--only prepare`` also builds the tables, and leaves what it made for ``--only train``.
    """
    rows: list[dict[str, Any]] = []
    model, prepare, train = options.model, options.only != "train", options.only != "prepare"
    given = options.epochs if len(options.epochs) > 1 else options.epochs * len(options.nodes)
    for nodes, epochs in zip(options.nodes, given, strict=True):
        place = options.folder / str(nodes)
        raw, graph, out = place / "raw", place / "graph", place / "run"
        values = {**SETTINGS[model], "epochs": epochs, "patience": epochs, "max_restarts": 0}
        settings = [part for key, value in values.items() for part in ("--set", f"{key}={str(value).lower()}")]
        row: dict[str, Any] = {"nodes": nodes, "ranks": options.ranks}
        if prepare:
            shutil.rmtree(place, ignore_errors=True)
            make(nodes, options.degree, raw)
            files = ["--features", str(raw / "x.npy"), "--labels", str(raw / "y.npy"), "--order", options.order]
            convert = [sys.executable, "-m", "asgat", "convert", str(raw / "edges.npy"), str(graph), *files]
            made = timed(convert)
            row |= {"convert_s": made["seconds"], "convert_mb": made["anonymous_mb"]}
            if not train:
                made = timed([*convert, "--table", "--model", model, *settings], threads=None)
                row |= {"table_s": made["seconds"], "table_mb": made["anonymous_mb"]}
            shutil.rmtree(raw)
        if train:
            shutil.rmtree(out, ignore_errors=True)
            command = ["train", str(graph), "--distributed", "--splits", "0", "--model", model, *settings]
            trained = timed([*launch(options.ranks, options.plan_for), *command, "--out", str(out)])
            run = json.loads((out / "result.json").read_text())["rows"][0]
            row |= {
                "entries": json.loads((graph / "header.json").read_text())["num_entries"],
                "build_s": max(part["build_s"] for part in run["ranks"]),
                "epoch_s": run["epoch_s"],
                "train_s": trained["seconds"],
                "train_mb": trained["anonymous_mb"],
                "train_mb_with_maps": trained["resident_mb"],
                "sent_mb": trained["sent_mb"],
                "epochs": run["epochs"],
                "peak_mb_per_rank": [part["peak_memory_mb"] for part in run["ranks"]],
                "table_mb_per_rank": [part["table_mb"] for part in run["ranks"]],
                "needed_rows": [part["needed_rows"] for part in run["ranks"]],
                "boundary_rows": [part["boundary_rows"] for part in run["ranks"]],
                "micro_f1": run["micro_f1"],
            }
        rows.append(row)
        print(json.dumps(row), flush=True)
        result = {"model": model, "rows": rows, "settings": SETTINGS[model], "planned_for_gib": options.plan_for}
        if train:
            result["exponent_epoch"] = exponent(rows, "epoch_s")
        if train and prepare:
            shutil.rmtree(place)
        if options.json:
            options.json.write_text(json.dumps(result, indent=2) + "\n")
    return result


# -- lost ranks -------------------------------------------------------------------------------------------------------


def kill(times: int, model: str, ranks: int, epochs: int, seed: int, after: list[int]) -> dict[str, Any]:
    """Kills a random rank at a random moment, then relaunches; the result must be that of an undisturbed run.

    With the same number of ranks it must be identical to the last bit. With another number dropout would differ: it is
    switched off, and losses are compared.
    """
    draw = random.Random(seed)
    settings = ["form=table", f"epochs={epochs}", f"patience={epochs}", "max_restarts=0"]
    if after != [ranks]:
        settings += ["dropout=0", "filter_activation=none"]
    options = [part for setting in settings for part in ("--set", setting)]
    train = ["train", "csbm", "--distributed", "--splits", "0", "--model", model, *options]
    rows: list[dict[str, Any]] = []

    def launched(count: int, out: Path) -> str:
        """The output of a run that must succeed."""
        both = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        with running([*launch(count), *train, "--out", str(out)], **both) as process:
            text: str = process.communicate()[0]
        if process.returncode:
            raise SystemExit(text)
        return text

    with tempfile.TemporaryDirectory() as folder:
        undisturbed = Path(folder) / "whole"
        launched(ranks, undisturbed)
        whole, losses = json.loads((undisturbed / "result.json").read_text())["rows"][0], read_losses(undisturbed)
        number = 0
        while len(rows) < times:
            number += 1
            out = Path(folder) / str(number)
            both = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
            with running([*launch(ranks), *train, "--out", str(out)], **both) as process:
                while process.poll() is None and (
                    len(children(process.pid)) < ranks or not (out / "config.toml").exists()
                ):
                    time.sleep(0.02)
                time.sleep(draw.uniform(0.0, whole["seconds"] + whole["ranks"][0]["build_s"]))
                alive = children(process.pid)
                if (out / "result.json").exists() or process.poll() is not None or len(alive) < ranks:
                    process.communicate()  # too late: it has finished
                    continue
                victim = draw.randrange(ranks)
                os.kill(alive[victim], signal.SIGKILL)
                killed = time.perf_counter()
                text = process.communicate()[0]
                seconds = time.perf_counter() - killed
            sentence = next((line for line in text.splitlines() if "another rank was lost" in line), "")
            if not sentence:
                print(text, flush=True)
            count = after[len(rows) % len(after)]
            again = launched(count, out)
            run = json.loads((out / "result.json").read_text())["rows"][0]
            keys = ("epochs", "best_epoch", "val_loss", "val_score", "micro_f1", "macro_f1")
            apart = [
                abs(a - b) for pair in zip(read_losses(out), losses, strict=True) for a, b in zip(*pair, strict=True)
            ]
            row = {
                "number": number,
                "killed_rank": victim,
                "seconds_to_end": seconds,
                "exit_code": process.returncode,
                "sentence": sentence,
                "left_running": sum(Path(f"/proc/{pid}").exists() for pid in alive),
                "ranks_after": count,
                "resumed": "goes on after epoch" in again,
                "largest_loss_difference": max(apart),
                "same_result": all(run[key] == whole[key] for key in keys),
            }
            rows.append(row)
            print(json.dumps(row), flush=True)
    return {"rows": rows, "undisturbed": whole}


def read_losses(out: Path) -> list[tuple[float, float]]:
    """Training and validation loss of every epoch of a finished run."""
    lines = (out / "metrics.jsonl").read_text().splitlines()
    return [(row["train_loss"], row["val_loss"]) for row in map(json.loads, lines)]


def numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    if sys.argv[1:2] == ["with-memory"]:  # one rank
        with_memory(float(sys.argv[2]), sys.argv[3:])
        return
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("parity")
    one.add_argument("--datasets", default="cora,chameleon,50000", help="names, or numbers of nodes of a block model")
    one.add_argument("--ranks", type=numbers, default=[2, 4])
    one.add_argument("--epochs", type=int, default=20)
    one.add_argument("--precision", choices=["float32", "float64"], default="float32")
    one.add_argument("--shift", type=float, default=1e-7, help="of the weights of a second single process; 0 for none")
    one.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a setting of the model")
    one = commands.add_parser("make")
    one.add_argument("nodes", type=int)
    one.add_argument("--degree", type=float, default=20.0)
    one.add_argument("--out", type=Path, required=True)
    one = commands.add_parser("scale")
    one.add_argument("--nodes", type=numbers, default=[200_000, 2_000_000])
    one.add_argument("--degree", type=float, default=20.0)
    one.add_argument("--ranks", type=int, default=2)
    one.add_argument("--epochs", type=numbers, default=[7], help="for all sizes, or one number each")
    one.add_argument("--only", choices=["prepare", "train"], help="one half of it")
    one.add_argument("--plan-for", type=float, help="GiB of memory that the ranks plan with, if less than there is")
    one.add_argument("--order", default="rcm")
    one.add_argument("--folder", type=Path, default=Path("runs/scale"))
    one = commands.add_parser("kill")
    one.add_argument("--times", type=int, default=10)
    one.add_argument("--ranks", type=int, default=2)
    one.add_argument("--epochs", type=int, default=150)
    one.add_argument("--seed", type=int, default=0)
    one.add_argument("--after", type=numbers, help="ranks to relaunch with, in turn; the same number by default")
    for one in commands.choices.values():
        one.add_argument("--json", type=Path)
    for name in ("parity", "scale", "kill"):
        commands.choices[name].add_argument("--model", choices=list(SETTINGS), default="asgat-cheb")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by SIGTERM"))  # so that child processes end too
    if options.command == "make":
        make(options.nodes, options.degree, options.out)
        return
    result = {
        "parity": lambda: parity(options),
        "scale": lambda: scale(options),
        "kill": lambda: kill(
            options.times,
            options.model,
            options.ranks,
            options.epochs,
            options.seed,
            options.after or [options.ranks],
        ),
    }[options.command]()
    result["peak_of_this_process_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
    if options.json:
        options.json.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
