"""Options that several commands share, and how their values are parsed."""

import os
import re
from pathlib import Path
from typing import Annotated, Any

import typer

from asgat.cli.output import check_json, detail, notes
from asgat.errors import AsgatError, counted
from asgat.threads import set_threads

ALWAYS_DETERMINISTIC = (
    "--deterministic has no effect on the CPU, where the same seed and number of threads always give the same numbers."
)


def complete_dataset(incomplete: str) -> list[str]:
    """The data sets whose names begin so, for the shell."""
    from asgat.data import dataset_names

    return [name for name in dataset_names() if name.startswith(incomplete)]


def complete_model(incomplete: str) -> list[str]:
    """The models whose names begin so, for the shell."""
    from asgat.nn.registry import MODELS

    return [name for name in MODELS if name.startswith(incomplete)]


Dataset = Annotated[str, typer.Argument(help="A name from `asgat datasets`.", autocompletion=complete_dataset)]
DataDir = Annotated[Path | None, typer.Option(help="Benchmark files. Default: ASGAT_DATA_DIR, or downloaded files.")]
Model = Annotated[str, typer.Option(help="A name from `asgat models`.", autocompletion=complete_model)]
Models = Annotated[str, typer.Option(help="Names from `asgat models`, separated by commas.")]
Datasets = Annotated[str, typer.Option(help="Names from `asgat datasets`, separated by commas.")]
Json = Annotated[
    Path | None,
    typer.Option("--json", help="Also write the numbers to this file; - is standard output.", callback=check_json),
]
Protocol = Annotated[str | None, typer.Option(help="Splits: full, public or geom-gcn. Default: the paper's.")]
Runs = Annotated[
    str, typer.Option("--splits", help="Runs, as in 0-9 or 0,3: run i has split i, or seed + i if there is one split.")
]
Seed = Annotated[int, typer.Option(help="Random seed.", min=0, max=2**32 - 1)]
Settings = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change a setting; see `asgat models`.")
]
Device = Annotated[str, typer.Option(help="cpu, cuda, or auto (cuda if available).")]
Fresh = Annotated[bool, typer.Option("--fresh", help="Discard earlier results in the run directory.")]
Deterministic = Annotated[bool, typer.Option("--deterministic", help="On CUDA: bit-identical results, slower.")]
Threads = Annotated[
    int | None,
    typer.Option(min=1, help="CPU threads. Default: by the work of an epoch.", callback=lambda n: fix_threads(n)),
]


def fix_threads(count: int | None) -> int | None:
    """Fixes the number of CPU threads of this command; None leaves it to each training."""
    set_threads(count)
    return count


def check_device(name: str, deterministic: bool = False) -> Any:
    """The torch device of that name, set to deterministic algorithms on request; ``auto`` is CUDA where available."""
    import torch

    try:
        device = torch.device(("cuda" if torch.cuda.is_available() else "cpu") if name == "auto" else name)
    except RuntimeError:
        device = None
    if device is None or device.type not in ("cpu", "cuda"):
        raise AsgatError(f"Unknown device {name!r}; use auto, cpu or cuda.")
    if device.type == "cuda" and (device.index or 0) >= (count := torch.cuda.device_count()):
        found = "no CUDA device is" if not count else "only cuda:0 is" if count == 1 else f"only {count} devices are"
        raise AsgatError(f"{name} was requested, but {found} available; use --device cpu.")
    if deterministic and device.type == "cuda":
        be_deterministic()
    elif deterministic:
        notes.print(ALWAYS_DETERMINISTIC, soft_wrap=True)
    model = f" ({torch.cuda.get_device_name(device)})" if device.type == "cuda" else ""
    detail(f"device {device}{model}, PyTorch {torch.__version__} with {counted(torch.get_num_threads(), 'thread')}")
    return device


def be_deterministic() -> None:
    """Makes CUDA give bit-identical numbers for the same seed until this process ends; call it before CUDA is used.

    Parallel sums get a fixed order, which costs time, and an operation without a deterministic implementation raises an
    error.
    """
    import torch

    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # cuBLAS reads it when it is first used
    torch.use_deterministic_algorithms(True)
    torch.backends.cudnn.benchmark = False


def parse_numbers(option: str, text: str) -> list[int]:
    """Whole numbers from text such as ``0-9`` or ``0,3,5-7``, sorted and without duplicates."""
    found: set[int] = set()
    for part in text.split(","):
        numbers = re.fullmatch(r"([0-9]{1,9})(?:-([0-9]{1,9}))?", part.strip())
        if numbers is None:
            raise AsgatError(f"{option} must be whole numbers such as 0-9 or 0,3,5, not {text!r}.")
        first, last = int(numbers[1]), int(numbers[2] or numbers[1])
        if last < first:
            raise AsgatError(f"{option} {text}: the range {part.strip()} is empty; write the smaller number first.")
        if last - first >= 10_000:
            raise AsgatError(f"{option} {text} has more than 10,000 numbers; give fewer.")
        found.update(range(first, last + 1))
    return sorted(found)


def parse_runs(text: str) -> tuple[list[int], str]:
    """The runs of ``--splits``, and a suffix for the names of folders unless they are the default 0-9."""
    runs = parse_numbers("--splits", text)
    return runs, "" if runs == list(range(10)) else f"-runs{text.replace(' ', '')}"


def parse_names(option: str, text: str) -> list[str]:
    """The names in a comma-separated list, without duplicates."""
    names = list(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    if not names:
        raise AsgatError(f"{option} is empty; give names separated by commas.")
    return names


def parse_settings(pairs: list[str], config: Any) -> dict[str, Any]:
    """Settings from ``key=value`` texts, typed as the model's configuration class defines them."""
    values = {}
    for pair in pairs:
        key, equals, text = pair.partition("=")
        if not equals:
            raise AsgatError(f"--set takes key=value, not {pair!r}.")
        values[key.strip()] = config.parse(key.strip(), text.strip())
    return values
