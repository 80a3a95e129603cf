"""The site that `ci/docs` builds from the pages: complete, without warnings, and usable without a network."""

import html.parser
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
DOCS = ROOT / "docs"
BUILD = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html"]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site, built once."""
    out = tmp_path_factory.mktemp("site")
    result = subprocess.run([*BUILD, "-d", out / ".read", DOCS, out], capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (0, "")
    return out


def test_every_page_is_built_and_in_the_search_index(site):
    pages = {path.relative_to(DOCS).with_suffix("").as_posix() for path in DOCS.rglob("*.md")}

    assert {page for page in pages if not (site / f"{page}.html").exists()} == set()
    index = (site / "searchindex.js").read_text("utf-8")
    match = re.search(r'"?docnames"?:\s*\[([^\]]*)\]', index)
    assert set(re.findall(r'"([^"]+)"', match[1])) == pages


class Fetched(html.parser.HTMLParser):
    """The addresses that a browser loads for a page."""

    def __init__(self):
        super().__init__()
        self.addresses = []

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        if tag in ("script", "img", "iframe") or (tag == "link" and given.get("rel") != "canonical"):
            self.addresses += [given[key] for key in ("src", "href") if given.get(key)]


def test_no_page_loads_remote_files(site):
    for path in site.rglob("*.html"):
        fetched = Fetched()
        fetched.feed(path.read_text("utf-8"))
        assert fetched.addresses
        for address in fetched.addresses:
            assert not re.match(r"(\w+:)?//", address), f"{path.name}: {address}"
            assert (path.parent / address.partition("?")[0].partition("#")[0]).exists(), f"{path.name}: {address}"


def test_a_page_in_no_table_of_contents_fails_the_build(tmp_path):
    for name in ("conf.py", "time.md"):
        shutil.copy(DOCS / name, tmp_path)
    (tmp_path / "index.md").write_text("# A page\n\n<!-- contents -->\n\n- [Time](time.md): of two clocks\n")
    (tmp_path / "lost.md").write_text("# Nobody leads here\n")

    result = subprocess.run(
        [*BUILD, "-b", "dummy", tmp_path, tmp_path / "out"], capture_output=True, text=True, check=False
    )

    assert result.returncode == 1
    assert "lost.md: WARNING: document isn't included in any toctree" in result.stderr


def test_a_list_below_the_contents_comment_is_a_table_of_contents():
    conf = runpy.run_path(str(DOCS / "conf.py"))
    lists = [
        "- [x](x.md)\n",
        "<!-- contents: How to -->\n",
        "- [a](a.md): [b](b.md)\n  and on\n- [c](d/c.md)\n",
        "- [e](e.md)\n",
    ]
    page = "\n".join(lists)

    assert conf["tables_of_contents"](page) == [("How to", ["a", "d/c"])]


def test_the_page_of_proofs_has_the_generated_table_below_its_text():
    conf = runpy.run_path(str(DOCS / "conf.py"))
    table = "# Statements and their proofs\n\n1 statement\n\n| A001 |\n"

    page = conf["shown_in"]("statements/table", "# Proofs\n\nMade by tests.\n", table)

    assert page == "# Proofs\n\nMade by tests.\n\n1 statement\n\n| A001 |\n"
