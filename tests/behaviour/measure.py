"""Measures the figures of `nets.toml`, and prints them as they stand there.

    python -m tests.behaviour.measure csbm fit_heat --seeds 8

It measures the package that Python imports: to measure another checkout, run it with that checkout's Python.
"""

import argparse
import tempfile
import time
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from statistics import fmean, stdev

import torch
from tests.behaviour.nets import Net, read_nets


def measure(net: Net, seeds: range) -> str:
    """The line of a net's figures."""
    found, started = [], time.process_time()
    for seed in seeds:
        with tempfile.TemporaryDirectory() as folder, redirect_stdout(StringIO()), redirect_stderr(StringIO()):
            found.append(net.run(seed, Path(folder)))
    values = {name: [figures[name] for figures in found] for name in found[0]}
    line = ", ".join(f"{name} = [{fmean(own):.4f}, {stdev(own):.4f}]" for name, own in values.items())
    seconds = (time.process_time() - started) / len(found)
    return f"[{net.name}]  # {seconds:.1f} s of one core for a seed\nseeds = {len(found)}\nfigures = {{ {line} }}\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="of nets; all by default")
    parser.add_argument("--seeds", type=int, help="how many; default: as in the table")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    options = parser.parse_args()
    torch.set_num_threads(1)
    for net in read_nets():
        if not options.names or net.name in options.names:
            print(measure(net, range(options.first, options.first + (options.seeds or net.seeds))), flush=True)


if __name__ == "__main__":
    main()
