"""The stems of words are found once, and not kept without bound."""

from jidomem.base import stems


def test_a_name_of_many_words_counts_as_many_in_what_is_kept(monkeypatch):
    monkeypatch.setattr(stems, "CACHE_SIZE", 5)
    stemmer = stems.Stemmer()
    key = "4f0a9c3e7b1d"

    first = stemmer.stems(f"{key} indexes")
    stemmer.stems("boxes")

    assert set(stemmer._known) == {"boxes"}
    assert stemmer.stems(f"{key} indexes") == first
