"""The settings a page shows are taken where they are set: in a root, in one's own configuration, or as waivers."""

import re
import tomllib
from pathlib import Path

import pytest

from jidomem.check.report import read_baseline
from jidomem.errors import Failed
from jidomem.runtime import settings
from jidomem.runtime.location import init

ROOT = Path(__file__).parents[2]
BLOCKS = [
    (page.relative_to(ROOT).as_posix(), block)
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    for block in re.findall(r"^```toml\n(.*?)^```$", page.read_text("utf-8"), re.DOTALL | re.MULTILINE)
]
WAIVERS = [each for each in BLOCKS if "[[waiver]]" in each[1]]
#: What only one's own configuration may say.
OWN = [each for each in BLOCKS if re.search(r"^(index =|\[(limits|embedder|model|reranker)\])", each[1], re.MULTILINE)]
OF_ROOTS = [each for each in BLOCKS if each not in WAIVERS and each not in OWN]


def names(blocks):
    return [page for page, _ in blocks]


@pytest.mark.parametrize(("page", "block"), WAIVERS, ids=names(WAIVERS))
def test_waivers_that_a_page_shows_are_taken(page, block):
    assert len(read_baseline(page, block.encode()).waivers) == block.count("[[waiver]]")


@pytest.mark.parametrize(("page", "block"), OF_ROOTS, ids=names(OF_ROOTS))
def test_what_a_page_shows_of_a_root_is_taken_and_known(page, block, tmp_path):
    root = init(tmp_path / "kitchen", "kitchen")
    with (root / "config.toml").open("a", encoding="utf-8") as config:
        config.write(block)

    assert settings.load(root).policy == settings.policy_of(root)
    with (root / "config.toml").open("a", encoding="utf-8") as config:
        config.write("colour = 1\n")
    with pytest.raises(Failed, match="colour"):
        settings.load(root)


@pytest.mark.parametrize(("page", "block"), OWN, ids=names(OWN))
def test_what_a_page_shows_of_ones_own_configuration_is_taken_there_and_in_no_root(page, block, tmp_path, monkeypatch):
    monkeypatch.delenv("JIDOMEM_EMBEDDER")
    root = init(tmp_path / "kitchen", "kitchen")
    bare = settings.load(root)
    own = settings.own_config()
    own.parent.mkdir(parents=True, exist_ok=True)
    own.write_text(block, "utf-8")
    own.chmod(0o600)

    found = settings.load(root)

    said = tomllib.loads(block)
    differs = [getattr(found, key) for key in said] != [getattr(bare, key) for key in said]
    assert differs == (page != "docs/http.md")  # which shows the defaults
    own.unlink()
    (root / "config.toml").write_text(block, "utf-8")
    with pytest.raises(Failed, match="cannot be set by a root"):
        settings.load(root)
