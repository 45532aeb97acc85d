"""The report of a run: one HTML file that needs no other file and no network."""

import binascii
import hashlib
import html
import json
import re
from importlib.resources import files
from pathlib import Path
from typing import Any

from asgat.estimator.trained_run import TrainedRun
from asgat.files.atomic import to_json, write_atomic
from asgat.report.content import report_content

SCRIPTS = ("dom.js", "charts.js", "explorer.js", "page.js")


def write_report(run: TrainedRun, path: Path | None = None) -> tuple[Path, dict[str, Any]]:
    """Writes the report of a run, RUN/report.html by default; returns its path and its content."""
    path = path or run.path / "report.html"
    content = report_content(run)
    write_atomic(path, render(content).encode("utf-8", "replace"))
    return path, content


def render(content: dict[str, Any]) -> str:
    """The page for a report's content, see :func:`~asgat.report.content.report_content`."""
    folder = files("asgat.report") / "page"
    script = "\n".join((folder / name).read_text(encoding="utf-8") for name in SCRIPTS)
    parts = {
        "title": html.escape(content["title"]),
        "style": (folder / "report.css").read_text(encoding="utf-8"),
        "script": script,
        # The only script the page may run: text in a name can never run as one.
        "digest": binascii.b2a_base64(hashlib.sha256(script.encode()).digest(), newline=False).decode(),
        "data": embed(content),
    }
    template = (folder / "template.html").read_text(encoding="utf-8")
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], template)  # one pass: data may contain {{…}}


def embed(content: Any) -> str:
    """JSON that cannot end its script element, whatever its texts hold."""
    plain = json.loads(to_json(content))  # NaN and infinity become null
    text = json.dumps(plain, separators=(",", ":"), ensure_ascii=True)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
