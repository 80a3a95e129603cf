"""The settings shown in pages are accepted: in a root, in the user configuration, or as waivers."""

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
#: Blocks that only the user configuration may have.
OWN = [each for each in BLOCKS if re.search(r"^(index =|\[(limits|embedder|model|reranker)\])", each[1], re.MULTILINE)]
OF_ROOTS = [each for each in BLOCKS if each not in WAIVERS and each not in OWN]


def names(blocks):
    return [page for page, _ in blocks]


@pytest.mark.parametrize(("page", "block"), WAIVERS, ids=names(WAIVERS))
def test_the_waivers_in_a_page_are_accepted(page, block):
    assert len(read_baseline(page, block.encode()).waivers) == block.count("[[waiver]]")


@pytest.mark.parametrize(("page", "block"), OF_ROOTS, ids=names(OF_ROOTS))
def test_the_root_settings_in_a_page_are_accepted(page, block, tmp_path):
    root = init(tmp_path / "kitchen", "kitchen")
    with (root / "config.toml").open("a", encoding="utf-8") as config:
        config.write(block)

    assert settings.load(root).policy == settings.policy_of(root)
    with (root / "config.toml").open("a", encoding="utf-8") as config:
        config.write("colour = 1\n")
    with pytest.raises(Failed, match="colour"):
        settings.load(root)


@pytest.mark.parametrize(("page", "block"), OWN, ids=names(OWN))
def test_the_user_settings_in_a_page_are_accepted_there_and_refused_in_a_root(page, block, tmp_path, monkeypatch):
    monkeypatch.delenv("JIDOMEM_EMBEDDER")
    root = init(tmp_path / "kitchen", "kitchen")
    bare = settings.load(root)
    own = settings.own_config()
    own.parent.mkdir(parents=True, exist_ok=True)
    own.write_text(block, "utf-8")
    own.chmod(0o600)

    loaded = settings.load(root)

    values = tomllib.loads(block)
    differs = [getattr(loaded, key) for key in values] != [getattr(bare, key) for key in values]
    assert differs == (page != "docs/http.md")  # which shows the defaults
    own.unlink()
    (root / "config.toml").write_text(block, "utf-8")
    with pytest.raises(Failed, match="cannot be set by a root"):
        settings.load(root)
