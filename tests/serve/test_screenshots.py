"""The screenshots in docs/curator.md: taken by a test run, one of each screen."""

import re

from curator_pictures import COMMAND, DIGEST, DOCS, PICTURES, WIDTH, digest, size_of

from jidomem.extras.web.pages import SCREENS


def test_each_screen_has_a_screenshot_that_the_page_of_the_docs_shows():
    shown = re.findall(r"!\[([^\]]+)\]\((screens/[a-z-]+\.png)\)", (DOCS.parent / "curator.md").read_text())

    assert {screen.path for screen in SCREENS} == {picture.screen for picture in PICTURES.values()}
    assert [path for _, path in shown] == [f"screens/{name}.png" for name in PICTURES]
    assert all(len(words.split()) > 3 for words, _ in shown)
    stored = {path.name: path.read_bytes() for path in DOCS.iterdir() if path != DIGEST}
    assert stored.keys() == {f"{name}.png" for name in PICTURES}
    assert sum(map(len, stored.values())) < 1_500_000
    assert {size_of(each)[0] for each in stored.values()} == {WIDTH}
    assert {size_of(each)[2] for each in stored.values()} == {3}  # by a palette


def test_the_screenshots_were_taken_with_the_present_pages():
    assert COMMAND in (DOCS.parent / "curator.md").read_text()
    assert DIGEST.read_text().strip() == digest(), f"the pages changed since: {COMMAND}, and look at each picture"
