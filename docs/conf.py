"""How Sphinx makes a site of these pages: `ci/docs`. They are plain Markdown, and read as well where Git shows them."""

import gc
import re
from pathlib import Path

import jidomem

HERE = Path(__file__).parent

gc.disable()  # a build takes 0.6 GB of memory so, and half as much time again otherwise

project = "jidomem"
author = "The jidomem authors"
copyright = "The jidomem authors, Apache-2.0"  # noqa: A001 - Sphinx calls it so
version = release = jidomem.__version__

extensions = ["myst_parser"]
root_doc = "index"
exclude_patterns = ["generate"]
nitpicky = True
show_warning_types = True
highlight_language = "text"
myst_heading_anchors = 4  # those of GitHub, so that a link to a heading leads there in both

html_theme = "furo"
html_title = f"jidomem {release}"
html_copy_source = html_use_index = False  # pages name no terms for an index
html_show_sphinx = False
html_last_updated_fmt = None  # the same pages give the same bytes
pygments_style, pygments_dark_style = "default", "monokai"  # what a command prints is read with ease in both

#: A list of pages that is a table of contents says so in the line above it, which no reader sees.
_CONTENTS = re.compile(r"^<!-- contents(?:: (?P<caption>.+))? -->\n\n(?P<list>(?:- .*\n(?:  .*\n)*)+)", re.MULTILINE)
_PAGE = re.compile(r"^- \[[^\]]+\]\(([^)#]+)\.md\)", re.MULTILINE)


def tables_of_contents(text: str) -> list[tuple[str, list[str]]]:
    """Return the caption and the pages of each list in *text* that is a table of contents."""
    return [(found["caption"] or "", _PAGE.findall(found["list"])) for found in _CONTENTS.finditer(text)]


#: A page -> the file that a site shows in it, where there is one.
_SHOWN = {"changelog": HERE.parent / "CHANGELOG.md", "statements/table": HERE.parent / "build" / "statements.md"}


def shown_in(docname: str, text: str, shown: str) -> str:
    """Return what the page *docname* says with what is *shown* in it."""
    if docname == "changelog":
        return shown.replace("](docs/", "](")
    return text + shown.partition("\n")[2]  # below the heading of the page itself


def _read(app, docname, source):
    """Give Sphinx, of a page, what it does not see by itself: the tables of contents, and files of elsewhere."""
    shown = _SHOWN.get(docname)
    if shown is not None and shown.exists():
        app.env.note_dependency(str(shown))
        source[0] = shown_in(docname, source[0], shown.read_text("utf-8"))
    for caption, pages in tables_of_contents(source[0]):
        options = ":hidden:\n:titlesonly:\n" + f":caption: {caption}\n" * bool(caption)
        source[0] += "\n```{toctree}\n" + "\n".join([options, *pages]) + "\n```\n"


def setup(app):
    """Let lists of links be tables of contents, and the changelog be a page of the site."""
    app.connect("source-read", _read)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
