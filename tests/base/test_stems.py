"""The stems of words, and the limited cache of stems."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

from jidomem.base import stems


def test_a_name_of_many_words_counts_as_many_in_the_cache(monkeypatch):
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


def test_words_of_two_scripts_and_names_with_digits_are_split():
    stemmer = stems.Stemmer()

    assert stemmer.stems("PostgreSQL-сервера v2")[-1] == ("2", "2")
    assert ("сервера", "сервер") in stemmer.stems("PostgreSQL-сервера")
    assert stemmer.stems("日本語") == [(word, word) for word, _ in stemmer.stems("日本語")]


def test_concurrent_stemmers_have_the_stems_of_one():
    text = (
        " ".join(f"{stem}{end}" for stem in ("копи", "настройк", "сервер", "парол", "хранилищ") for end in "аеиую") * 40
    )
    expected = stems.Stemmer().stems(text)

    with ThreadPoolExecutor(4) as pool:
        for result in pool.map(lambda number: stems.Stemmer().stems(text), range(12)):
            assert result == expected


def test_a_word_of_another_script_loads_the_stemmer_of_its_language_alone():
    code = (
        "import sys; from jidomem.base.stems import Stemmer; print(Stemmer().stems('серверов'));"
        " print(*sorted(name for name in sys.modules if 'snowball' in name and name.endswith('stemmer')))"
    )
    result = subprocess.run([sys.executable, "-X", "utf8", "-c", code], capture_output=True, text=True, check=True)

    assert result.stdout.splitlines() == [
        "[('серверов', 'сервер')]",
        "jidomem_snowball.basestemmer jidomem_snowball.russian_stemmer",
    ]
