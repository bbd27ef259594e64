"""How the documentation is built: `make docs`, without a network."""

import os
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "extensions"))
os.environ.setdefault("HF_HUB_OFFLINE", "1")

project = "rankone"
html_title = "rankone"
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx_gallery.gen_gallery",
    "api_pages",  # these four are in extensions/
    "docstrings",
    "references",
    "statements",
]
exclude_patterns = ["extensions", "**/*.ipynb", "tutorials/**/sg_execution_times.rst"]
exclude_patterns += ["sg_execution_times.rst", "tutorials/**/*.py"]
suppress_warnings = ["config.cache"]  # the order of the gallery is a function
default_role = "py:obj"
nitpicky = True

myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]

autodoc_inherit_docstrings = False  # those of torch and transformers are in their own documentation
autodoc_member_order = "bysource"
autodoc_type_aliases = {"ArrayLike": "numpy.typing.ArrayLike"}  # not written out
autodoc_typehints_format = "short"
autodoc_default_options = {"members": True, "show-inheritance": True}

toc_object_entries = False  # thousands of them, on every page
html_theme = "furo"
html_static_path = ["extensions/static"]
html_css_files = ["rankone.css"]
html_copy_source = False
html_show_copyright = False


sphinx_gallery_conf = {
    "examples_dirs": "../examples/tutorials",
    "gallery_dirs": "tutorials",
    "filename_pattern": r"\.py$",
    "within_subsection_order": "gallery.tutorial_order",
    "image_scrapers": ("gallery.figures", "matplotlib"),
    "reset_modules": ("matplotlib", "gallery.reset"),
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_signature": False,
    "min_reported_time": 60,
}
