"""Makes the figures that show what commands print and write, by running them.

python docs/scripts/command_figures.py tutorial    the figures of use-on-my-graph.md, from the commands of that page
python docs/scripts/command_figures.py demo        those of the README, from the commands of `make demo`

Chromium takes the pictures; `make system-extras` installs it.
"""

import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from PIL import Image, ImageChops
from rich.console import Console
from rich.text import Text

DOCS = Path(__file__).resolve().parents[1]
FIGURES = DOCS / "figures"
WIDTH = 84  # of the terminal, in characters
TERMINAL = """<!doctype html><meta charset="utf-8">
<body style="margin:0;background:#fbfbfa;font-size:14px">{code}"""
NODE = "p122"  # all its neighbours are of the other class
SECTIONS = {"summary": "", "filters": "", "explorer": f"#node={NODE}"}
HIDDEN = "header, nav, footer, #settings, #filters .card ~ .card, #explorer-card table"  # of the pictures of the report


def demo() -> None:
    """Learned filters, and a node of the report whose neighbours are all of the other class."""
    makefile = (DOCS.parent / "Makefile").read_text(encoding="utf-8")
    commands = re.findall(r"^\t\$\(BIN\)/python -m (asgat (?:compare|report) .*)$", makefile, flags=re.MULTILINE)
    with tempfile.TemporaryDirectory() as folder:
        for command in commands:
            run(shlex.split(command), Path(folder))
        directory = Path(folder) / commands[-1].split()[-1]
        save(Image.open(directory / "filters.png").convert("RGB"), FIGURES / "demo-filters.png")
        report_picture("report", "explorer", "#node=785", directory / "report.html")


def tutorial() -> None:
    page = (DOCS / "use-on-my-graph.md").read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        market = Path(folder) / "market"
        market.mkdir()
        (code,) = re.findall(r"^```python\n(.*?)^```$", page, flags=re.DOTALL | re.MULTILINE)
        subprocess.run([sys.executable, "-c", code], cwd=market, check=True)
        commands = [shlex.split(line) for line in re.findall(r"^asgat .*$", page, flags=re.MULTILINE)]
        printed = [run(command, market) for command in commands]
        health, board = printed[0].split("Training many models", 1)
        terminal_picture("tutorial-health", health, market)
        terminal_picture("tutorial-leaderboard", "Training many models" + board, market)
        terminal_picture("tutorial-predict", printed[1], market)
        terminal_picture("tutorial-explain", shortened(printed[3]), market)
        for section, anchor in SECTIONS.items():
            report_picture(
                f"tutorial-report-{section}", section, anchor, market / "runs" / "market-attention" / "report.html"
            )


def run(command: Sequence[str], folder: Path) -> str:
    """What a command prints on a terminal, colours included."""
    environment = {**os.environ, "COLUMNS": str(WIDTH), "FORCE_COLOR": "1", "TERM": "xterm-256color"}
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=folder, env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout


def shortened(text: str, rows: int = 18) -> str:
    """A long table: its first rows, and the lines below it."""
    lines = text.splitlines()
    end = next(number for number in range(len(lines) - 1, 0, -1) if f"node {NODE}:" in lines[number])
    return "\n".join([*lines[: rows + 4], "  …", "", *lines[end:]])


def terminal_picture(name: str, text: str, folder: Path) -> None:
    console = Console(width=WIDTH, record=True, file=open(os.devnull, "w"), force_terminal=True)  # noqa: SIM115
    console.print(Text.from_ansi(text.strip("\n")), soft_wrap=True)
    style = "font-family:'DejaVu Sans Mono',monospace;margin:14px;line-height:1.25"
    code = f'<pre style="{style}">{{code}}</pre>'
    html = folder / f"{name}.html"
    html.write_text(TERMINAL.format(code=console.export_html(inline_styles=True, code_format=code)), encoding="utf-8")
    picture(name, html.as_uri(), 780, 1400)


def report_picture(name: str, section: str, anchor: str, report: Path) -> None:
    """One section of the report: the others, and its heading, are hidden in a copy."""
    style = f"<style>{HIDDEN}, section:not(#{section}) {{display: none !important}}</style>"
    copy = report.with_name(f"{section}.html")
    copy.write_text(without_policy(report.read_text(encoding="utf-8")).replace("</head>", f"{style}</head>"), "utf-8")
    picture(name, copy.as_uri() + anchor, 1000, 1500)


def without_policy(html: str) -> str:
    """The report's content security policy would refuse the style above."""
    return re.sub(r"<meta http-equiv=.Content-Security-Policy[^>]*>", "", html)


def picture(name: str, address: str, width: int, height: int) -> None:
    path = FIGURES / f"{name}.png"
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--virtual-time-budget=4000"]
    size = [f"--window-size={width},{height}", f"--screenshot={path}"]
    subprocess.run(["chromium", *options, *size, address], check=True, stderr=subprocess.DEVNULL)
    with Image.open(path) as opened:
        image = opened.convert("RGB")
    empty = Image.new("RGB", image.size, image.getpixel((width - 1, height - 1)))
    box = ImageChops.difference(image, empty).getbbox()
    if box is not None:
        image = image.crop((0, max(box[1] - 12, 0), width, min(box[3] + 12, height)))
    save(image, path)


def save(image: Image.Image, path: Path) -> None:
    """A small file: these pictures have few colours."""
    image.quantize(64, dither=Image.Dither.NONE).save(path, optimize=True)
    print(path)


if __name__ == "__main__":
    {"demo": demo, "tutorial": tutorial}[sys.argv[1]]()
