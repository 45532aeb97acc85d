"""MathJax from the package sphinx-mathjax-offline, without the parts that these pages do not use."""

import shutil
from importlib.metadata import files
from pathlib import Path
from typing import Any

PACKAGE = "sphinx-mathjax-offline"
SCRIPT = "tex-chtml.js"
FONTS = "output/chtml/fonts/woff-v2"


def setup(app: Any) -> dict[str, bool]:
    app.connect("config-inited", lambda app, config: setattr(config, "mathjax_path", f"mathjax/{SCRIPT}"))
    app.connect("build-finished", copy_mathjax)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def copy_mathjax(app: Any, error: Exception | None) -> None:
    if error is None and app.builder.format == "html":
        source, target = mathjax_folder(), Path(app.outdir) / "_static" / "mathjax"
        shutil.copytree(source / FONTS, target / FONTS, dirs_exist_ok=True)
        shutil.copy(source / SCRIPT, target / SCRIPT)


def mathjax_folder() -> Path:
    (script,) = [file for file in files(PACKAGE) or [] if file.name == SCRIPT]
    return Path(str(script.locate())).parent
