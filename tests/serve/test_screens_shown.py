"""The pictures of the pages in docs/curator.md: taken by the test run, and one of each screen."""

import re

from curator_pictures import DOCS, PICTURES, WIDTH, size_of

from jidomem.serve.curator.screens import SCREENS


def test_each_screen_has_a_picture_that_the_page_about_them_shows():
    shown = re.findall(r"!\[([^\]]+)\]\((screens/[a-z-]+\.png)\)", (DOCS.parent / "curator.md").read_text())

    assert {screen.path for screen in SCREENS} == {picture.screen for picture in PICTURES.values()}
    assert [path for _, path in shown] == [f"screens/{name}.png" for name in PICTURES]
    assert all(len(words.split()) > 3 for words, _ in shown)
    kept = {path.name: path.read_bytes() for path in DOCS.iterdir()}
    assert kept.keys() == {f"{name}.png" for name in PICTURES}
    assert sum(map(len, kept.values())) < 1_500_000
    assert {size_of(each)[0] for each in kept.values()} == {WIDTH}
    assert {size_of(each)[2] for each in kept.values()} == {3}  # by a palette
