"""``asgat tune``: a search for settings."""

import math
import shlex
from contextlib import nullcontext
from datetime import date
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from asgat.cli import options
from asgat.cli.graph_options import DatasetOrRun, GraphOptions, check_source, load_source, takes_graph
from asgat.cli.output import check_writable, console, make_table, notes, resumable, say, write_json


@takes_graph(panel="Your graph instead of a data set")
def tune(
    graph: GraphOptions,
    dataset: DatasetOrRun = None,
    model: Annotated[
        str | None,
        typer.Option(help="A name from `asgat models`. Default: asgat-cheb; of your graph asgat-plus, or the run's."),
    ] = None,
    trials: Annotated[int, typer.Option(help="Finished trials of the study, including earlier ones.", min=1)] = 40,
    splits: options.Runs = "0-9",
    seed: options.Seed = 0,
    folds: Annotated[int, typer.Option(help="Folds of the training nodes that are held out and scored; 0: none.")] = 0,
    macro: Annotated[bool, typer.Option("--macro", help="Score by the mean of score and macro-F1.")] = False,
    both: Annotated[bool, typer.Option("--both", help="With --folds: score on validation nodes too.")] = False,
    prefer_fast: Annotated[
        bool, typer.Option("--prefer-fast", help="Of trials as good as the best, take the one that trains fastest.")
    ] = False,
    set_: options.Settings = None,
    seconds: Annotated[float | None, typer.Option(help="Start no trial after this many seconds.")] = None,
    storage: Annotated[
        str | None, typer.Option(help="URL of an Optuna storage, e.g. sqlite:///study.db. Default: in --out.")
    ] = None,
    protocol: options.Protocol = None,
    device: options.Device = "auto",
    threads: options.Threads = None,
    out: Annotated[Path | None, typer.Option(help="Folder for the results. Default: in runs.")] = None,
    data_dir: options.DataDir = None,
    json: options.Json = None,
) -> None:
    """Search for settings by their mean validation score on a data set or your graph; test nodes are removed first.

    The best settings are written as a recipe for `asgat train --recipe` or, of your graph, `asgat fit --recipe`.

    With --folds the score is that of held-out training nodes, and the validation nodes only stop the training. This
    takes longer, and is more reliable if there are few validation nodes.

    With --prefer-fast the recipe is the cheapest trial within half a standard error of the best score.

    A setting given with --set is fixed. A stopped command resumes when it is started again; started several times at
    once with one --storage, the processes work on one study.
    """
    from asgat.errors import AsgatError
    from asgat.files.atomic import write_atomic
    from asgat.files.lock import locked
    from asgat.nn.registry import model_spec
    from asgat.tuning.evaluation import Evaluation, cheapest
    from asgat.tuning.space import make_search_space
    from asgat.tuning.storage import file_url, storage_errors
    from asgat.tuning.tuner import Tuner

    check_source(dataset, graph, protocol)
    if both and not folds:
        raise AsgatError("--both needs --folds, for example --folds 5; without it only validation nodes are scored.")
    (runs, suffix), where = options.parse_runs(splits), options.check_device(device)
    if model is not None:
        model_spec(model)  # reports a misspelt name first
    source = load_source(dataset, graph, seed, max(runs) + 1, protocol, data_dir)
    runs = source.runs(runs)
    model = model or source.default_model
    given = options.parse_settings(set_ or [], model_spec(model).config)
    search = make_search_space(source.name, model, given, source.config(model, given) if source.user else None)
    data = source.dataset_for(model)
    evaluation = Evaluation(data, model, runs, seed, where, folds, macro, both)
    name = f"{source.name}-{model}-seed{seed}{suffix}{f'-folds{folds}' if folds else ''}"
    name += ("-both" if both else "") + ("-macro" if macro else "")
    out = out or Path("runs") / f"tune-{name}"
    log = out / "trials.jsonl"
    check_writable(log)
    facts = {"dataset": source.name, "model": model, "protocol": data.protocol, "runs": runs, "seed": seed}
    facts |= {key: on for key, on in (("folds", folds), ("with_validation", both), ("with_macro", macro)) if on}
    if source.user:
        facts["data"] = source.user.digest
    if not storage and (out / "journal.log").exists():
        raise AsgatError(f"{out} holds a search of an earlier version, which cannot go on; choose another --out.")
    searched = f"{trials} trials over {', '.join(search.space)}, on {where}"
    console.print(f"[bold]{model}[/] on [bold]{escape(source.name)}[/] ({data.protocol} splits), {searched}")

    about = {**facts, "metric": data.metric}

    def on_trial(row: dict[str, Any]) -> None:
        write_log(log, about, tuner.rows())
        notes.print(f"trial {row['trial']}: {row.get('error') or percent(row)}", markup=False, soft_wrap=True)

    with storage_errors(), nullcontext() if storage else locked(out), resumable("Finished trials are saved"):
        tuner = Tuner(storage or file_url(out / "study.db"), name, model, search, facts, seed)
        if not storage:  # no other process uses the study: trials that are running were killed
            tuner.release()
        tuner.run(evaluation, trials, math.inf if seconds is None else seconds, on_trial)
        rows, best = tuner.rows(), tuner.best()
    fast = cheapest(rows, len(evaluation.splits))
    chosen = fast if prefer_fast else best
    write_log(log, about, rows)
    scored = "held_out_and_val" if both else "held_out" if folds else "val"
    words = {"model": model, "trials": trials, "seed": seed, "splits": splits != "0-9" and splits, "folds": folds}
    words |= {"both": both, "macro": macro, "prefer-fast": prefer_fast, "protocol": protocol}
    found = {
        "command": command(source.words, words, set_ or []),
        "seed": seed,
        "trials": len(rows),
        "trial": chosen["trial"],
        f"{scored}_{data.metric}{'_and_macro' if macro else ''}": round(chosen["value"], 6),
    }
    if source.user:
        found |= {"dataset": source.name, "data": source.user.digest, "date": date.today().isoformat()}
    write_atomic(out / "recipe.toml", recipe_text(model, chosen["settings"], found).encode())
    nodes = "held-out training nodes" if folds else "validation nodes"
    nodes += (" and validation nodes" if both else "") + (", mean of score and macro-F1" if macro else "")
    console.print(best_table(rows, list(search.space), nodes))
    if prefer_fast:
        say(fast_sentence(best, fast), wrap=True)
    say(f"recipe:  {out / 'recipe.toml'}")
    say(f"log:     {log}")
    write_json(json, {**about, "held": search.fixed, "best": best, "fast": fast, "found": found, "rows": rows})


def percent(row: dict[str, Any]) -> str:
    diverged = f", {row['diverged']} runs diverged" if row.get("diverged") else ""
    return f"{100 * row['value']:.2f} ± {100 * row.get('std', 0.0):.2f}{diverged}"


def fast_sentence(best: dict[str, Any], fast: dict[str, Any]) -> str:
    """What the cheapest trial within half a standard error of the best one saves."""
    if fast["trial"] == best["trial"]:
        return f"Trial {best['trial']} is both the best and the fastest within half a standard error of it."
    saved = f"trains in {fast['seconds']:.1f} s instead of {best['seconds']:.1f} s"
    return f"Trial {fast['trial']} {saved}, and is within half a standard error of the best: {percent(fast)}."


def best_table(rows: list[dict[str, Any]], searched: list[str], nodes: str, count: int = 5) -> Table:
    best = sorted(rows, key=lambda row: (-row["value"], row["trial"]))[:count]
    settings = (" ".join(f"{key}={str(row['settings'].get(key)).lower()}" for key in searched) for row in best)
    cells = [(str(row["trial"]), percent(row), text) for row, text in zip(best, settings, strict=True)]
    title = f"Best trials, score on {nodes} in percent"
    return make_table(title, ("trial", "score", "settings"), cells, left=("settings",))


def command(data: list[str], given: dict[str, Any], settings: list[str]) -> str:
    """The command line that repeats a search; options that are False or None, and 0 folds, are left out."""
    words = ["asgat", "tune", *data]
    for name, value in given.items():
        if value is True:
            words.append(f"--{name}")
        elif value or name == "seed":
            words += [f"--{name}", str(value)]
    return shlex.join(words + [word for pair in settings for word in ("--set", pair)])


def recipe_text(model: str, settings: dict[str, Any], found: dict[str, Any]) -> str:
    """A recipe file for ``--recipe``: the model, its settings, and where they come from."""
    from asgat.files.atomic import to_toml
    from asgat.nn.registry import make_config
    from asgat.recipe import FOUND

    values = make_config(model, **settings).to_dict()
    head = "# Settings of the best mean score of a search; test nodes were not used.\n"
    plain = {key: values[key] for key in settings}
    return head + to_toml({"model": model, model: plain}) + f"\n[{model}.{FOUND}]\n" + to_toml(found)


def write_log(path: Path, facts: dict[str, Any], rows: list[dict[str, Any]]) -> None:
    """Writes one line of JSON per trial, readable without Optuna."""
    from json import dumps

    from asgat.files.atomic import write_atomic

    write_atomic(path, "".join(dumps({**facts, **row}) + "\n" for row in rows).encode())
