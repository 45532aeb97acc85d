"""The command `asgat tune`."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from asgat.cli.options import (
    DataDir,
    Device,
    Json,
    Protocol,
    Runs,
    Seed,
    Settings,
    check_device,
    check_writable,
    console,
    errors,
    interrupted,
    parse_runs,
    parse_settings,
    write_json,
)


def tune(
    dataset: Annotated[str, typer.Argument(help="A name from `asgat datasets`.")] = "csbm",
    model: Annotated[str, typer.Option(help="A name from `asgat models`.")] = "asgat-cheb",
    trials: Annotated[int, typer.Option(help="Finished trials of the study, those of earlier starts included.")] = 40,
    splits: Runs = "0-9",
    seed: Seed = 0,
    folds: Annotated[
        int,
        typer.Option(
            help="Divide the training nodes into this many parts and judge by the parts left out of training; "
            "0: by the validation nodes."
        ),
    ] = 0,
    macro: Annotated[
        bool,
        typer.Option("--macro", help="Judge by the mean of score and macro-F1: rare classes count as much as any."),
    ] = False,
    both: Annotated[
        bool, typer.Option("--both", help="With --folds: judge by the parts left out and the validation nodes alike.")
    ] = False,
    set_: Settings = None,
    batch: Annotated[int, typer.Option(help="Trials of one architecture that are trained together.", min=1)] = 4,
    seconds: Annotated[float | None, typer.Option(help="After which no trial is begun any more.")] = None,
    storage: Annotated[
        str | None,
        typer.Option(help="Journal file or database URL (postgresql://…) that workers share; a file in --out else."),
    ] = None,
    protocol: Protocol = None,
    device: Device = "cpu",
    out: Annotated[
        Path | None, typer.Option(help="Folder for log, recipe and figure; runs/tune-DATASET-MODEL-seedN by default.")
    ] = None,
    data_dir: DataDir = None,
    json: Json = None,
) -> None:
    """Search for settings by their mean validation score; test nodes are taken out beforehand.

    With --folds the score is that of training nodes left out, and validation nodes only end the training: more to
    train, and a fairer judge where validation nodes are few.

    A setting given with --set is held. The same command goes on where it was stopped; started several times at once,
    with the same storage, it works on one study in parallel.
    """
    from asgat.data import get_info, load_dataset
    from asgat.errors import AsgatError
    from asgat.files.atomic import write_atomic
    from asgat.nn.registry import model_spec
    from asgat.tuning.evaluation import Evaluation
    from asgat.tuning.recipe_file import recipe_text
    from asgat.tuning.space import make_search_space
    from asgat.tuning.storage import import_optuna, open_storage, workers_folder
    from asgat.tuning.study_figure import study_figure
    from asgat.tuning.tuner import Tuner

    import_optuna()
    get_info(dataset)
    if trials < 1:
        raise AsgatError(f"--trials must be at least 1, but is {trials}.")
    if both and not folds:
        raise AsgatError("--both is for --folds: without them validation nodes alone judge. Add --folds 5, say.")
    runs, where = parse_runs(splits), check_device(device)
    search = make_search_space(dataset, model, parse_settings(set_ or [], model_spec(model).config))
    check_writable(json)
    data = load_dataset(dataset, protocol, data_dir)
    evaluation = Evaluation(data, model, runs, seed, where, folds, macro, both)
    part = "" if runs == list(range(10)) else f"-runs{splits.replace(' ', '')}"
    part += f"-folds{folds}" if folds else ""
    part += "-both" if both else ""
    part += "-macro" if macro else ""
    name = f"{dataset}-{model}-seed{seed}{part}"
    out = out or Path("runs") / f"tune-{name}"
    check_writable(out / "trials.jsonl")
    facts = {"dataset": dataset, "model": model, "protocol": data.protocol, "runs": runs, "seed": seed}
    facts |= {"folds": folds} if folds else {}
    facts |= {"with_validation": True} if both else {}
    facts |= {"with_macro": True} if macro else {}
    place = storage or str(out / "journal.log")
    shared = workers_folder(place)
    tuner = Tuner(open_storage(place), name, model, search, facts, seed, batch, workers=shared)
    console.print(
        f"[bold]{model}[/] on [bold]{dataset}[/] ({data.protocol} splits), {trials} trials over "
        f"{', '.join(search.space)}",
        highlight=False,
    )
    folder = out

    def told(row: dict[str, Any]) -> None:
        write_log(folder / "trials.jsonl", {**facts, "metric": data.metric}, tuner.rows())
        errors.print(f"trial {row['trial']}: {row.get('error') or percent(row)}", highlight=False, soft_wrap=True)

    try:
        tuner.run(evaluation, trials, seconds, told)
    except KeyboardInterrupt:
        raise interrupted("Finished trials are kept") from None
    rows, best = tuner.rows(), tuner.best()
    write_log(out / "trials.jsonl", {**facts, "metric": data.metric}, rows)
    by = "held_out_and_val" if both else "held_out" if folds else "val"
    found = {
        "command": command(dataset, model, trials, splits, seed, set_ or [], batch, protocol, folds, macro, both),
        "seed": seed,
        "trials": len(rows),
        "trial": best["trial"],
        f"{by}_{data.metric}{'_and_macro' if macro else ''}": round(best["value"], 6),
    }
    write_atomic(out / "recipe.toml", recipe_text(model, best["settings"], found).encode())
    judges = "training nodes left out" if folds else "validation nodes"
    judges += " and validation nodes" if both else ""
    judges += ", mean of score and macro-F1" if macro else ""
    title = f"{model} on {dataset}: {len(rows)} trials, best {100 * best['value']:.2f} % on {judges}"
    figure = study_figure(rows, search.space, out / "search.png", title)
    console.print(best_table(rows, list(search.space), judges))
    for label, path in (("recipe", out / "recipe.toml"), ("log", out / "trials.jsonl"), ("figure", figure)):
        console.print(f"{label + ':':8} {path}", highlight=False, soft_wrap=True, markup=False, emoji=False)
    result = {**facts, "metric": data.metric, "held": search.fixed, "best": best, "found": found, "rows": rows}
    write_json(json, result)


def percent(row: dict[str, Any]) -> str:
    diverged = f", {row['diverged']} runs diverged" if row.get("diverged") else ""
    return f"{100 * row['value']:.2f} ± {100 * row.get('std', 0.0):.2f}{diverged}"


def best_table(rows: list[dict[str, Any]], searched: list[str], judges: str, count: int = 5) -> Table:
    """The best trials, with the settings that were searched."""
    table = Table(title=f"Best trials, score on {judges} in percent", box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("trial", justify="right")
    table.add_column("score", justify="right")
    table.add_column("settings")
    for row in sorted(rows, key=lambda row: (-row["value"], row["trial"]))[:count]:
        settings = " ".join(f"{key}={str(row['settings'].get(key)).lower()}" for key in searched)
        table.add_row(str(row["trial"]), percent(row), settings)
    return table


def command(
    dataset: str,
    model: str,
    trials: int,
    splits: str,
    seed: int,
    settings: list[str],
    batch: int,
    protocol: str | None,
    folds: int = 0,
    macro: bool = False,
    both: bool = False,
) -> str:
    """The command line that makes the same search."""
    words = ["asgat", "tune", dataset, "--model", model, "--trials", str(trials), "--seed", str(seed)]
    words += ["--splits", splits] if splits != "0-9" else []
    words += ["--folds", str(folds)] if folds else []
    words += ["--both"] if both else []
    words += ["--macro"] if macro else []
    words += ["--batch", str(batch)] if batch != 4 else []
    words += ["--protocol", protocol] if protocol else []
    for pair in settings:
        words += ["--set", pair]
    return shlex.join(words)


def write_log(path: Path, facts: dict[str, Any], rows: list[dict[str, Any]]) -> None:
    """One line a trial, readable without Optuna."""
    from json import dumps

    from asgat.files.atomic import write_atomic

    write_atomic(path, "".join(dumps({**facts, **row}) + "\n" for row in rows).encode())
