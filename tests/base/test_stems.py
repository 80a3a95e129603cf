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


def test_an_inflected_word_of_each_script_has_the_stem_of_its_other_forms():
    forms = {
        "Russian": "копия копии копию",
        "Russian adjectives": "новый новая нового новые",
        "Russian after a vowel": "синий синяя синие",
        "Greek": "αντίγραφα αντίγραφο ΑΝΤΊΓΡΑΦΑ",
        "Arabic": "النسخ نسخة نسخ",
        "Hindi": "सर्वर सर्वरों",
        "English": "copies copied copy",
    }
    stemmer = stems.Stemmer()

    assert {name: len({stem for _, stem in stemmer.stems(text)}) for name, text in forms.items()} == dict.fromkeys(
        forms, 1
    )


def test_a_word_of_two_scripts_and_a_name_with_figures_keep_their_parts():
    stemmer = stems.Stemmer()

    assert stemmer.stems("PostgreSQL-сервера v2")[-1] == ("2", "2")
    assert ("сервера", "сервер") in stemmer.stems("PostgreSQL-сервера")
    assert stemmer.stems("日本語") == [(word, word) for word, _ in stemmer.stems("日本語")]
