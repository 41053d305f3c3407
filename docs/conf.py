"""Sphinx settings. Pages with code cells are executed when the site is built; an error or a warning
ends the build.
"""

import logging
import os
import sys
from pathlib import Path

import drmdp

os.environ["MPLBACKEND"] = "module://matplotlib_inline.backend_inline"
os.environ["TTY_COMPATIBLE"] = "0"  # no colours in what commands print
os.environ["IPYTHONDIR"] = str(Path(__file__).parent / "_ipython")

logging.getLogger("traitlets").setLevel(logging.WARNING)

project = "drmdp"
author = "The drmdp developers"
copyright = "the drmdp developers, MIT licence"
version = release = drmdp.__version__

sys.path.insert(0, str(Path(__file__).parent))
extensions = [
    "mathml",
    "pages",
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.doctest",
    "sphinx.ext.napoleon",
]
exclude_patterns = [
    "_build",
    "_ipython",
    "_parts",
    "reproduction/**",
]  # the last two are included by pages
html_math_renderer = "mathml"
html_theme = "furo"
html_title = f"drmdp {version}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False

myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

nb_execution_mode = "force"
nb_execution_timeout = 900
nb_execution_raise_on_error = True
nb_merge_streams = True

autodoc_member_order = "bysource"
autodoc_typehints = "none"
napoleon_google_docstring = False
napoleon_use_rtype = False
# parameters that share a sentence share a line, and no word of a type is taken for a link
napoleon_use_param = False
napoleon_custom_sections = [("Attributes", "params_style")]  # a list, as that of parameters
