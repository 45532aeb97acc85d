"""Links from pages to files outside ``docs/``: pages of the site where there is one, else the path of the file."""

import re
from typing import Any

LINK = re.compile(r"\[([^\]]+)\]\((?:\.\./)+([^)#]+)(#[^)]*)?\)")
PAGES = {"CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md", "README.md": "index.md"}


def setup(app: Any) -> dict[str, bool]:
    app.connect("source-read", mend_links)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def mend_links(app: Any, page: str, source: list[str]) -> None:
    if app.env.doc2path(page).suffix == ".md":
        source[0] = LINK.sub(mended, source[0])


def mended(link: re.Match[str]) -> str:
    """A link as the site has it.

    >>> mended(LINK.match("[recipes](../src/asgat/recipes)"))
    'recipes (`src/asgat/recipes`)'
    >>> mended(LINK.match("[how to add a filter](../CONTRIBUTING.md#how-to-add)"))
    '[how to add a filter](/contributing.md#how-to-add)'
    """
    text, path, anchor = link[1], link[2], link[3] or ""
    if path in PAGES:
        return f"[{text}](/{PAGES[path]}{anchor})"
    return f"`{path}`" if path.endswith(text.strip("`")) else f"{text} (`{path}`)"
