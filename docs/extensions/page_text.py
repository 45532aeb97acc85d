"""What pages have in the repository, as the site has it.

Links to files outside ``docs/`` become links to a page of the site where there is one, else the path of the file. A
score and its spread stay in one line.
"""

import re
from typing import Any

LINK = re.compile(r"\[([^\]]+)\]\(((?:\.\./)+)([^)#]+)(#[^)]*)?\)")
PAGES = {"CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md", "README.md": "index.md"}


def setup(app: Any) -> dict[str, bool]:
    app.connect("source-read", mend)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def mend(app: Any, page: str, source: list[str]) -> None:
    if app.env.doc2path(page).suffix == ".md":
        depth = page.count("/")
        source[0] = LINK.sub(lambda link: mended_link(link, depth), source[0]).replace(" ± ", "\u00a0±\u00a0")


def mended_link(link: re.Match[str], depth: int = 0) -> str:
    """A link as the site has it, on a page in a folder so many levels below ``docs/``.

    >>> mended_link(LINK.match("[the settings](../src/asgat/recipes)"))
    'the settings (`src/asgat/recipes`)'
    >>> mended_link(LINK.match("[recipes](../../src/asgat/recipes)"), depth=1)
    '`src/asgat/recipes`'
    >>> mended_link(LINK.match("[Results](../results.md)"), depth=1)
    '[Results](../results.md)'
    >>> mended_link(LINK.match("[how to add a filter](../CONTRIBUTING.md#how-to-add)"))
    '[how to add a filter](/contributing.md#how-to-add)'
    """
    text, path, anchor = link[1], link[3], link[4] or ""
    if link[2].count("../") <= depth:
        return link[0]
    if path in PAGES:
        return f"[{text}](/{PAGES[path]}{anchor})"
    return f"`{path}`" if path.endswith(text.strip("`")) else f"{text} (`{path}`)"
