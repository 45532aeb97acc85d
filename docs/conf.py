"""The site of the documentation; `make docs` builds it.

Nothing is fetched while it is built or read: MathJax and the theme come with the packages of the extra `docs`.
"""

import sys
from pathlib import Path

from jupyter_client.manager import KernelManager

sys.path.insert(0, str(Path(__file__).parent / "extensions"))

import asgat

if hasattr(KernelManager, "transport_encryption"):  # otherwise kernels warn that theirs is off
    KernelManager.transport_encryption.default_value = "auto"

project = "asgat"
author = "The asgat developers"
copyright = "the asgat developers"
version = release = asgat.__version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.mathjax",
    "sphinx_copybutton",
    "sphinx_design",
    "generated_pages",
    "local_mathjax",
    "page_text",
]
exclude_patterns = ["extensions", "results"]

# Pages
highlight_language = "text"
myst_enable_extensions = ["amsmath", "colon_fence", "dollarmath"]
myst_heading_anchors = 4
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 120
nb_merge_streams = True
nb_output_stderr = "remove"

# Docstrings
autodoc_class_signature = "mixed"
autodoc_default_options = {"members": True}
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # types of arguments stand in the signature
autodoc_preserve_defaults = True
napoleon_numpy_docstring = False
napoleon_custom_sections = [("Shapes", "notes_style")]
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 90
toc_object_entries = False

# References to this package must exist; those to other packages are not links, because the site works offline.
nitpicky = True
nitpick_ignore_regex = [("py:.*", r"(?!asgat).*"), ("py:mod", ".*")]

# Appearance
html_theme = "furo"
html_title = "asgat"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_copyright = False
html_theme_options = {"navigation_with_keys": True, "footer_icons": []}
copybutton_prompt_text = "$ "
