"""The site of the documentation: it is built without a warning, works offline, and holds everything public."""

import doctest
import importlib
import importlib.util
import pkgutil
import re
import subprocess
import sys
from functools import cache
from html.parser import HTMLParser
from inspect import isclass, isfunction
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

import asgat

ROOT = Path(__file__).resolve().parents[1]
NEEDED = ("sphinx", "myst_nb", "furo", "sphinx_design", "sphinx_copybutton", "sphinx-mathjax-offline")
MISSING = [name for name in NEEDED if importlib.util.find_spec(name) is None]

pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"the extra docs is not installed: {', '.join(MISSING)}")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The built site. Notebooks are left as they are; tests/test_notebooks.py runs them."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", "-D", "nb_execution_mode=off"]
    command += [str(ROOT / "docs"), str(folder / "html"), "-d", str(folder / "doctrees")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return folder / "html"


class Page(HTMLParser):
    """What a page refers to, and the places in it that can be referred to."""

    def __init__(self, text):
        super().__init__()
        self.links, self.loaded, self.anchors = [], [], set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.anchors.update(filter(None, (values.get("id"), values.get("name"))))
        if tag == "a" and values.get("href"):
            self.links.append(values["href"])
        if tag in ("img", "script", "iframe", "source") and values.get("src"):
            self.loaded.append(values["src"])
        if tag == "link" and values.get("rel") in ("stylesheet", "preload", "icon"):
            self.loaded.append(values["href"])


@cache
def parsed(path):
    return Page(path.read_text(encoding="utf-8"))


def pages(site):
    return sorted(site.rglob("*.html"))


def test_nothing_is_loaded_from_elsewhere(site):
    for page in pages(site):
        for address in parsed(page).loaded:
            parts = urlsplit(address)
            assert not parts.scheme or parts.scheme == "data", f"{page.relative_to(site)} loads {address}"
            assert not parts.netloc, f"{page.relative_to(site)} loads {address}"
            if not parts.scheme:
                assert (page.parent / unquote(parts.path)).is_file(), f"{page.relative_to(site)} loads {address}"
    assert not re.search(r"@import|url\(\s*['\"]?https?:", (site / "_static/site.css").read_text(encoding="utf-8"))


def test_every_link_inside_the_site_has_a_target(site):
    wrong = []
    for page in pages(site):
        for address in parsed(page).links:
            parts = urlsplit(address)
            if parts.scheme or parts.netloc:
                continue
            target = page.parent / unquote(parts.path) if parts.path else page
            place = unquote(parts.fragment) if target.suffix == ".html" else ""
            if not target.is_file() or (place and place not in parsed(target).anchors):
                wrong.append(f"{page.relative_to(site)}: {address}")
    assert wrong == []


def test_links_to_files_outside_the_pages_are_mended(site):
    scores = parsed(site / "reference/baseline-scores.html").links
    assert "../baselines.html" in scores
    assert "contributing.html#how-to-add" in [link.rstrip("-") for link in parsed(site / "extending.html").links]


def test_examples_of_the_extensions(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "docs" / "extensions")
    results = doctest.testmod(importlib.import_module("page_text"))
    assert (results.failed, results.attempted) == (0, 4)


def public_names():
    """The names that packages export."""
    packages = ["asgat", *(m.name for m in pkgutil.walk_packages(asgat.__path__, "asgat.") if m.ispkg)]
    for package in packages:
        if package in ("asgat.cli", "asgat.kernels.cuda", "asgat.kernels.cpu"):
            continue
        module = importlib.import_module(package)
        yield from ((package, name) for name in getattr(module, "__all__", []) if name != "__version__")


def test_everything_public_is_in_the_reference(site):
    """Classes and functions count as documented under any of the packages that export them."""
    documented = set()
    for page in (site / "reference" / "api").glob("*.html"):
        documented |= {anchor.rsplit(".", 1)[-1] for anchor in parsed(page).anchors if anchor.startswith("asgat.")}
    names = list(public_names())
    assert len(names) > 50
    values = ((package, name, getattr(importlib.import_module(package), name)) for package, name in names)
    public = [f"{package}.{name}" for package, name, value in values if isclass(value) or isfunction(value)]
    assert [name for name in public if name.rsplit(".", 1)[-1] not in documented] == []


def test_equations_of_docstrings_are_rendered(site):
    text = (site / "reference/api/layers.html").read_text(encoding="utf-8")
    assert 'class="math notranslate nohighlight"' in text
    assert r"\mathrm{softmax}\big(\mathrm{topK}(\psi^{(m)}_v, k)\big)" in text
    assert "mathjax/tex-chtml.js" in text
    assert (site / "_static/mathjax/output/chtml/fonts/woff-v2/MathJax_Main-Regular.woff").is_file()
    assert ":math:" not in text
    assert ".. math" not in text


def test_commands_and_settings_are_those_of_the_program(site):
    from typer.main import get_command

    from asgat.cli.app import app
    from asgat.config import ASGATConfig, ASGATDeepConfig

    commands = (site / "reference/commands.html").read_text(encoding="utf-8")
    for name in get_command(app).commands:  # type: ignore[attr-defined]
        assert f">asgat {name}" in commands, name
    assert "MINUTES" in commands
    settings = (site / "reference/settings.html").read_text(encoding="utf-8")
    for key in {*ASGATConfig.keys(), *ASGATDeepConfig.keys()}:
        assert f'<span class="pre">{key}</span>' in settings, key


def test_the_search_knows_the_certificate(site):
    index = (site / "searchindex.js").read_text(encoding="utf-8")
    assert '"certif"' in index or "certif:" in index


def test_no_page_shows_markup_that_was_not_read(site):
    """Roles and markers that a parser did not understand would be left in the text."""
    for page in pages(site):
        text = re.sub(r"<(script|pre|code)\b.*?</\1>", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        for wrong in (":class:`", ":func:`", ":math:`", "generated:", "{eval-rst}", "{include}"):
            assert wrong not in text, f"{page.relative_to(site)} has {wrong}"
