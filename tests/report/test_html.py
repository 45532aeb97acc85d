"""The page: one file, safe whatever the names in it are, tested in a browser if one is installed."""

import json
import re

import numpy as np
import pandas
import pytest
from tests.report.conftest import EVIL, made_board

from asgat.data import load_dataset
from asgat.estimator.classifier import ASGATClassifier
from asgat.estimator.trained_run import load_run
from asgat.graph import Graph
from asgat.leaderboard.board import board_content
from asgat.recipe import load_config
from asgat.report.html import embed, render, write_report
from asgat.training.runner import run


@pytest.fixture(scope="module")
def page(karate, tmp_path_factory):
    path, content = write_report(load_run(karate), tmp_path_factory.mktemp("page") / "report.html")
    return path.read_text(encoding="utf-8"), content


def test_the_page_holds_its_data_and_loads_nothing(page):
    text, content = page
    (data,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    assert json.loads(data) == json.loads(json.dumps(content))
    assert "{{" not in text.replace(data, "")
    addresses = re.findall(r"https?://[^\s\"']+", text)
    assert set(addresses) <= {"http://www.w3.org/2000/svg"}
    assert "default-src 'none'" in text
    assert "unsafe-inline'; img" not in text
    assert "innerHTML" not in text
    assert len(text) < 1_000_000


def test_names_cannot_become_markup(named, tmp_path):
    path, content = write_report(load_run(named), tmp_path / "report.html")
    text = path.read_text(encoding="utf-8")
    assert EVIL in content["classes"][0]
    assert EVIL in content["explorer"]["nodes"]["id"]
    assert "<img" not in text
    assert text.count("</script>") == 2
    (data,) = re.findall(r'id="data">(.*?)</script>', text, re.DOTALL)
    assert json.loads(data)["explorer"]["nodes"]["id"] == content["explorer"]["nodes"]["id"]


@pytest.mark.parametrize("text", ["</script>", "<!--<script>", "a & b > c", "\u2028\u2029", "\ud800", "{{title}}"])
def test_embedded_text_comes_back_as_it_was(text):
    found = embed({"a": [text, 1.5, float("nan")]})
    assert not set("<>&\u2028\u2029") & set(found)
    assert found.isascii()
    assert json.loads(found) == {"a": [text, 1.5, None]}


def test_data_is_never_taken_for_a_placeholder(page):
    _, content = page
    text = render({**content, "title": "{{data}} & <b>", "classes": ["{{style}}", "{{nothing}}"]})
    assert "<title>{{data}} &amp; &lt;b&gt;</title>" in text
    assert text.count("{{style}}") == 1


# -- in a browser -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """The demo's data and settings, for a few epochs."""
    path = tmp_path_factory.mktemp("demo")
    config = load_config("csbm", "asgat-cheb", {"epochs": 8})
    run(load_dataset("csbm"), "asgat-cheb", config, runs=[0, 1], out=path)
    return write_report(load_run(path))[0]


@pytest.fixture(scope="module")
def texas(real_data, tmp_path_factory):
    path = tmp_path_factory.mktemp("texas")
    config = load_config("texas", "asgat-cheb", {"epochs": 8})
    run(load_dataset("texas", data_dir=real_data), "asgat-cheb", config, runs=[0], out=path)
    return write_report(load_run(path, real_data))[0]


CHARTS = (
    "loss",
    "score",
    "filter-0",
    "filter-1",
    "homophily",
    "confusion",
    "calibration",
    "distance-chart",
    "explorer-card",
)


def marks(browser, chart):
    return browser.evaluate(f"document.querySelectorAll('#{chart} .mark').length")


def check_quiet(browser):
    assert browser.complaints == []
    assert [url for url in browser.requests if not url.startswith(("file:", "data:", "about:"))] == []


def pick_other(browser):
    """Types another node's id, as a user would; returns the id."""
    other = browser.evaluate(
        "[...document.querySelectorAll('#node-ids option')].map((o) => o.value)"
        ".find((v) => v !== document.getElementById('node').value)"
    )
    browser.evaluate("document.getElementById('node').focus(); document.getElementById('node').select()")
    browser("Input.insertText", text=other)
    browser.press("Enter", 13, "\r")
    browser.settle()
    return other


@pytest.mark.parametrize("name", ["demo", "texas"])
@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)], ids=["wide light", "narrow dark"])
def test_a_report_works_in_a_browser(browser, request, name, width, dark):
    path = request.getfixturevalue(name)
    browser.open(path, width, dark=dark)
    check_quiet(browser)
    for chart in CHARTS:
        assert marks(browser, chart) > 0, f"{chart} is empty"
    assert browser.evaluate("document.documentElement.scrollWidth") <= width  # nothing overflows

    assert 1 <= browser.evaluate("document.querySelectorAll('input[data-head]:checked').length") <= 2
    before = browser.evaluate("document.getElementById('canvas').innerHTML")
    table = browser.evaluate("document.getElementById('attended').textContent")
    other = pick_other(browser)
    assert browser.evaluate("document.querySelector('.facts dd').textContent") == other
    assert browser.evaluate("document.getElementById('canvas').innerHTML") != before
    assert browser.evaluate("document.getElementById('attended').textContent") != table

    edges = "document.querySelectorAll('#graph .attention[data-head=\"{}\"]').length".format
    rows = "document.querySelectorAll('#attended tr[data-head=\"{}\"]').length".format
    heads = browser.evaluate("[...document.querySelectorAll('input[data-head]:checked')].map((b) => b.dataset.head)")
    head = next(h for h in heads if browser.evaluate(edges(h)))
    total = browser.evaluate("document.querySelectorAll('#graph .attention').length")
    mine = browser.evaluate(edges(head))
    switch = f"document.querySelector('input[data-head=\"{head}\"]')"
    browser.evaluate(f"{switch}.focus()")
    browser.press(" ", 32, " ")
    browser.settle()
    assert browser.evaluate(edges(head)) == browser.evaluate(rows(head)) == 0
    assert browser.evaluate("document.querySelectorAll('#graph .attention').length") == total - mine
    browser.press(" ", 32, " ")
    browser.settle()
    assert browser.evaluate(edges(head)) == mine
    check_quiet(browser)


def test_the_keyboard_reaches_nodes_and_charts(browser, demo):
    browser.open(demo)
    browser.evaluate("document.querySelector('#loss svg[tabindex]').focus()")
    browser.press("ArrowRight", 39)
    assert "training loss" in browser.evaluate("document.getElementById('tip').textContent")
    browser.press("Escape", 27)
    assert browser.evaluate("document.getElementById('tip').hidden")
    browser.evaluate("document.querySelector('#graph .vertex').focus()")
    while browser.evaluate("document.activeElement.getAttribute('role')") != "button":
        browser.press("ArrowRight", 39)
    wanted = browser.evaluate("document.activeElement.getAttribute('aria-label').match(/^node (.*?),/)[1]")
    browser.press("Enter", 13, "\r")
    browser.settle()
    assert browser.evaluate("document.getElementById('node').value") == wanted
    assert browser.evaluate("document.activeElement.classList.contains('centre')")
    check_quiet(browser)


def test_hiding_a_line_and_changing_the_theme(browser, demo):
    browser.open(demo)
    before = marks(browser, "filter-0")
    browser.evaluate("document.querySelector('#filter-0 .legend button').click()")
    assert marks(browser, "filter-0") == before - 1
    light = browser.evaluate("getComputedStyle(document.body).backgroundColor")
    seen = set()
    for _ in range(3):
        browser.evaluate("document.getElementById('theme').click()")
        seen.add(browser.evaluate("document.getElementById('theme').textContent"))
        if browser.evaluate("document.documentElement.dataset.theme") == "dark":
            assert browser.evaluate("getComputedStyle(document.body).backgroundColor") != light
    assert seen == {"Theme: auto", "Theme: light", "Theme: dark"}


def test_an_unknown_node_is_reported(browser, demo):
    browser.open(demo)
    browser.evaluate("document.getElementById('node').focus(); document.getElementById('node').select()")
    browser("Input.insertText", text="nobody")
    browser.press("Enter", 13, "\r")
    assert "no node “nobody”" in browser.evaluate("document.querySelector('.message').textContent")


def test_an_address_can_name_a_node(browser, demo):
    browser.open(demo, fragment="#node=17")
    assert browser.evaluate("document.querySelector('.facts dd').textContent") == "17"


def test_names_stay_text_in_a_browser(browser, named, tmp_path):
    path, content = write_report(load_run(named), tmp_path / "report.html")
    browser.open(path)
    for node in content["explorer"]["nodes"]["id"][:4]:
        browser.evaluate("document.getElementById('node').focus(); document.getElementById('node').select()")
        browser("Input.insertText", text=node)
        browser.press("Enter", 13, "\r")
        browser.settle()
    assert browser.evaluate("document.images.length + document.querySelectorAll('b:not(#tip b)').length") == 0
    assert browser.evaluate("document.title") == content["title"]
    assert EVIL in browser.evaluate("document.querySelector('#confusion th.side').textContent")
    check_quiet(browser)


def test_a_model_without_attention_has_a_page_too(browser, gcn):
    path, _ = write_report(load_run(gcn))
    browser.open(path)
    check_quiet(browser)
    for chart in ("loss", "score", "homophily", "confusion", "calibration", "explorer-card"):
        assert marks(browser, chart) > 0
    assert browser.evaluate("document.getElementById('leaderboard').hidden")
    assert browser.evaluate("document.getElementById('filters').hidden && document.getElementById('distance').hidden")
    assert browser.evaluate("document.querySelectorAll('#graph .attention').length") == 0


# Parts of words that no one can read: wider than their place, or outside the window.
CUT_LABELS = """[...document.querySelectorAll('main text, main label, main td, main th, nav a')].filter((e) => {
  const at = e.getBoundingClientRect();
  return at.width && !e.closest('#graph, details') && (at.left < 0 || at.right > innerWidth);
}).map((e) => e.textContent)"""


@pytest.mark.parametrize(("width", "dark"), [(1400, False), (390, True)], ids=["wide light", "narrow dark"])
def test_the_leaderboard_and_the_features_of_a_node_are_shown(browser, tmp_path, width, dark):
    """Of a logistic regression, which has no heads."""
    club, rng = load_dataset("karate"), np.random.default_rng(0)
    frame = pandas.DataFrame({"age": rng.integers(20, 70, 34), "town": rng.choice(["Bern", "Oslo"], 34)})
    frame.loc[0] = [42, "Oslo"]
    model = ASGATClassifier("mlp", epochs=4, settings={"layers": 1, "dropout": 0.0})
    path = model.fit(club.graph, club.y, range(20), x=frame).save_pretrained(tmp_path / "club")
    (path / "leaderboard.json").write_bytes(board_content({}, 1.0, made_board(f"logistic regression {EVIL}")))
    browser.open(write_report(load_run(path))[0], width, dark=dark, fragment="#node=0")
    check_quiet(browser)
    shown = browser.evaluate("document.getElementById('leaderboard').innerText")
    for words in ("Chosen on validation: logistic regression", "Better than guessing: made up.", "60.0 – 80.0"):
        assert words in shown
    assert browser.evaluate("document.querySelector('#leaderboard .chosen td').textContent").startswith("logistic")
    assert browser.evaluate("document.getElementById('features').innerText").split() == ["age", "42", "town", "Oslo"]
    likely = browser.evaluate("[...document.querySelectorAll('#likely strong')].map((s) => parseFloat(s.textContent))")
    assert sum(likely) == pytest.approx(100, abs=0.2)
    assert browser.evaluate("document.querySelectorAll('#class-scores tbody tr').length") == 2
    assert "asgat predict" in browser.evaluate("document.getElementById('next').textContent")
    assert browser.evaluate("document.getElementById('filters').hidden && document.getElementById('distance').hidden")
    assert browser.evaluate("document.images.length") == 0
    assert browser.evaluate(CUT_LABELS) == []
    board = "document.querySelector('#leaderboard .scroll')"
    assert browser.evaluate(f"{board}.scrollWidth <= {board}.clientWidth")
    other = pick_other(browser)
    assert browser.evaluate("document.querySelector('.facts dd').textContent") == other
    assert browser.evaluate("document.getElementById('features').innerText").split() != ["age", "42", "town", "Oslo"]


def test_no_label_is_cut_on_a_phone(browser, demo):
    browser.open(demo, 390)
    assert browser.evaluate(CUT_LABELS) == []


@pytest.fixture(scope="module")
def deep(tmp_path_factory):
    """A function that reports the deep model with the given blocks on the directed karate club."""
    club = load_dataset("karate")
    graph = Graph.from_edges(club.graph.edges_once()[0], 34, directed=True)

    def make(channels, layers=2, heads=2):
        settings = {"channels": channels, "layers": layers}
        model = ASGATClassifier("asgat-deep", epochs=4, hidden=8, heads=heads, k=3, directed=True, settings=settings)
        path = model.fit(graph, club.y, range(20), x=club.x).save_pretrained(tmp_path_factory.mktemp("deep"))
        return write_report(load_run(path))[0]

    return make


def titles(browser):
    return browser.evaluate("[...document.querySelectorAll('#filters figure h3')].map((h) => h.textContent)")


def test_attention_and_filter_heads_of_a_block_have_charts_of_their_own(browser, deep):
    browser.open(deep("attention+filters"), 1280, fragment="#node=2")
    check_quiet(browser)
    for chart in ("filter-0", "filter-1", "filter-head-0", "filter-head-1", "distance-chart", "explorer-card"):
        assert marks(browser, chart) > 0, f"{chart} is empty"
    kinds = ["attention", "attention", "filter", "filter"]
    assert titles(browser) == [f"Block {1 + i % 2}: 2 {kind} heads" for i, kind in enumerate(kinds)]
    assert browser.evaluate("document.querySelector('#attended th').textContent") == "Block"
    assert "block 1, head 1" in browser.evaluate("document.getElementById('distance-chart').textContent")


def test_filters_alone_have_responses_and_no_attention_to_explore(browser, deep):
    browser.open(deep("filters"), 400)
    check_quiet(browser)
    assert titles(browser) == ["Block 1: 2 filter heads", "Block 2: 2 filter heads"]
    assert browser.evaluate("document.getElementById('distance').hidden")
    assert "no attention to explore" in browser.evaluate("document.getElementById('explorer-lead').textContent")
    assert browser.evaluate("document.documentElement.scrollWidth") <= 400


def test_many_heads_stay_readable(browser, deep):
    browser.open(deep("attention", layers=6, heads=4), 1280)
    check_quiet(browser)
    bars = "[...document.querySelectorAll('#distance-chart text.title')].map((t) => t.textContent)"
    assert browser.evaluate(bars)[:3] == ["block 1, out", "block 1, in", "block 2, out"]
    drawn = "new Set([...document.querySelectorAll('#graph .attention')].map((p) => p.dataset.head)).size"
    assert browser.evaluate(drawn) <= 4
    assert browser.evaluate("document.querySelectorAll('#explorer input[data-head]').length") == 24


@pytest.fixture(scope="module")
def directed(tmp_path_factory):
    club = load_dataset("karate")
    graph = Graph.from_edges(club.graph.edges_once()[0], 34, directed=True)
    model = ASGATClassifier(epochs=8, hidden=4, heads=3, k=4, order=5, directed=True)
    path = model.fit(graph, club.y, range(20), x=club.x).save_pretrained(tmp_path_factory.mktemp("directed"))
    return write_report(load_run(path))[0]


@pytest.mark.parametrize("width", [1280, 400])
def test_the_sides_of_a_directed_graph_can_be_shown_apart(browser, directed, width):
    browser.open(directed, width, fragment="#node=2")
    check_quiet(browser)
    for chart in CHARTS:
        assert marks(browser, chart) > 0, f"{chart} is empty"
    assert browser.evaluate("document.documentElement.scrollWidth") <= width
    assert browser.evaluate("document.querySelectorAll('#graph .arrow').length") > 0
    assert browser.evaluate("[...document.querySelectorAll('#attended th')].map((h) => h.textContent)") == [
        "Layer", "Head", "Side", "Node", "Its side", "Weight", "Hops", "Class", "Band",
    ]  # fmt: skip
    sides = "[...new Set([...document.querySelectorAll('#attended tbody tr')].map((r) => r.cells[2].textContent))]"
    assert browser.evaluate(sides) == ["out", "in"]
    drawn = browser.evaluate("document.querySelectorAll('#graph .attention').length")
    browser.evaluate("document.querySelector('input[data-side=out]').click()")
    browser.settle()
    assert browser.evaluate(sides) == ["in"]
    assert 0 < browser.evaluate("document.querySelectorAll('#graph .attention').length") < drawn
    check_quiet(browser)
