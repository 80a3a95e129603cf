"""The pictures of the pages in docs/curator.md: taken by the test run, and one of each screen."""

import re

from curator_pictures import COMMAND, DIGEST, DOCS, PICTURES, WIDTH, digest, size_of

from jidomem.extras.web.pages import SCREENS


def test_each_screen_has_a_picture_that_the_page_about_them_shows():
    shown = re.findall(r"!\[([^\]]+)\]\((screens/[a-z-]+\.png)\)", (DOCS.parent / "curator.md").read_text())

    assert {screen.path for screen in SCREENS} == {picture.screen for picture in PICTURES.values()}
    assert [path for _, path in shown] == [f"screens/{name}.png" for name in PICTURES]
    assert all(len(words.split()) > 3 for words, _ in shown)
    kept = {path.name: path.read_bytes() for path in DOCS.iterdir() if path != DIGEST}
    assert kept.keys() == {f"{name}.png" for name in PICTURES}
    assert sum(map(len, kept.values())) < 1_500_000
    assert {size_of(each)[0] for each in kept.values()} == {WIDTH}
    assert {size_of(each)[2] for each in kept.values()} == {3}  # by a palette


def test_the_pictures_were_taken_with_the_pages_as_they_are():
    assert COMMAND in (DOCS.parent / "curator.md").read_text()
    assert DIGEST.read_text().strip() == digest(), f"the pages changed since: {COMMAND}, and look at each picture"
