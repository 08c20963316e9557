"""The documentation as a site: sphinx-build -W docs build/site (extra `docs`)."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the checkout, whatever is installed

from docs.api_pages import UNLINKED

project = "raconvert"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx_copybutton", "docs.api_pages"]
extensions += ["docs.accessible"]
html_static_path = ["_static"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["changes/*"]
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence", "html_image"]
nitpicky = True  # names of the API that lead nowhere are errors
smartquotes = False  # `--allow` stays what one types
default_role = "code"  # what docstrings have between single backticks
nitpick_ignore = {("py:class", name) for name in UNLINKED}
autodoc_typehints = "signature"
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88
html_theme = "furo"
html_title = "raconvert"
project_copyright = "the raconvert developers, MIT licence"
html_copy_source = False
copybutton_prompt_text = r"\$ |>>> |\.\.\. "
copybutton_prompt_is_regexp = True
