"""Word stems: of words in Latin letters by the Porter stemmer of SQLite, of others by the Snowball stemmer of a script.

A script stands for its language with the most speakers: Cyrillic words are stemmed as Russian ones.
"""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from threading import Lock
from types import ModuleType
from typing import Any, cast
from weakref import finalize

from jidomem.base.regex import lazy
from jidomem.base.words import TELL_LITTLE, names, words_of

#: SQLite splits at spaces only and changes nothing: `jidomem.base.words` has prepared the words.
TOKENS = "ascii tokenchars '_'"
#: The most words cached with their stems, about 40 MB; then the cache is emptied. A name may give thousands of words.
CACHE_SIZE = 100_000


#: language -> the letters of its script, without the digits and signs in between.
_SCRIPTS = {
    "russian": "\u0400-\u052f",
    "greek": "\u0370-\u03ff",
    "arabic": "\u0620-\u064a\u066e-\u06d3",
    "hindi": "\u0900-\u0963",
    "armenian": "\u0531-\u0587",
    "tamil": "\u0b80-\u0be5",
}
_LETTERS = lazy("|".join(f"(?P<{language}>[{letters}])" for language, letters in _SCRIPTS.items()))
#: language -> frequent words of its questions and statements, without accents.
_FREQUENT_WORDS = {
    language: frozenset(frequent.split())
    for language, frequent in {
        "german": "der die das den dem des ein eine einen einem einer und oder ist sind war wird werden wie was wann wo"
        " wer warum welche welcher welches wir ihr unser unsere nicht mit von zu zum zur im auf fur bei nach uber um",
        "french": "le la les un une des du et ou est sont quel quelle quels quelles quand comment combien pourquoi qui"
        " que nous notre nos pour dans sur avec pas ne au aux ce cette se de l d",
        "spanish": "el la los las un una y o es son esta que cual cuales cuando como cuanto donde quien por para con"
        " en de del al se no nuestro nuestra su lo",
        "italian": "il lo la i gli le un una e o sono che quale quali quando come quanto dove chi perche per con in di"
        " del della dei delle al alla si non nostro nostra",
        "portuguese": "o a os as um uma e ou sao que qual quais quando como quanto onde quem por para com em de do da"
        " dos das no na se nao nosso nossa",
        "dutch": "de het een en of is zijn wordt worden hoe wat wanneer waar wie waarom welke wij we onze ons niet met"
        " van naar voor op bij aan om er",
        "swedish": "den det en ett och eller ar som hur vad nar var vem varfor vilken vilket vilka vi var vart inte med"
        " av till for pa i om att",
        "danish": "den det en et og eller er som hvordan hvad hvornar hvor hvem hvorfor hvilken hvilket vi vores ikke"
        " med af til for pa i om at",
    }.items()
}
#: The texts have lost the breve of the Russian letter in these endings.
_WITHOUT_BREVE = lazy("(?<=[аеиоуыэюя])и$")


@cache
def _snowball_class(language: str) -> Callable[[], Any]:
    """Return the class of the Snowball stemmer of *language*.

    It is loaded alone, under another name: `import snowballstemmer` loads all languages, in 0.15 s instead of 6 ms.
    """
    found = find_spec("snowballstemmer")
    package = sys.modules.setdefault("jidomem_snowball", ModuleType("jidomem_snowball"))
    package.__path__ = [*(found.submodule_search_locations or ())] if found else []
    stemmers = import_module(f"jidomem_snowball.{language}_stemmer")
    return cast(Callable[[], Any], getattr(stemmers, f"{language.capitalize()}Stemmer"))


def language_of(text: str) -> str | None:
    """Return the language of which *text* has the most frequent words, at least two; None if English has as many.

    >>> language_of("Wann läuft die Sicherung?"), language_of("When does the backup run?"), language_of("backup")
    ('german', None, None)
    """
    words = {name.casefold() for name in names(text)}
    counts = {language: len(words & frequent) for language, frequent in _FREQUENT_WORDS.items()}
    language = max(counts, key=lambda each: counts[each])
    return language if counts[language] > max(1, len(words & TELL_LITTLE)) else None


class Stemmer:
    """Word stems, each computed once."""

    def __init__(self) -> None:
        self._known: dict[str, list[tuple[str, str]]] = {}
        self._kept = 0
        self._lock = Lock()
        self._engine = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        self._snowball: dict[str, Any] = {}  # each has a state of its own, and is used under the lock
        finalize(self, self._engine.close).atexit = False  # as a thread may use it then
        self._engine.execute(f"CREATE VIRTUAL TABLE word USING fts5(text, content='', tokenize=\"porter {TOKENS}\")")
        self._engine.execute("CREATE VIRTUAL TABLE stem USING fts5vocab(word, 'instance')")

    def stems(self, text: str) -> list[tuple[str, str]]:
        """Return the words of *text* in order, each with its stem.

        >>> Stemmer().stems("Indexes are indexed")
        [('indexes', 'index'), ('are', 'ar'), ('indexed', 'index')]
        """
        return self.stems_of_each([text])[0]

    def stems_of_each(self, texts: Iterable[str]) -> list[list[tuple[str, str]]]:
        """Return the same for each of *texts*; new words are stemmed together, which takes a tenth of the time."""
        names_by_text = [names(text) for text in texts]
        with self._lock:
            if self._kept > CACHE_SIZE:
                self._known.clear()
                self._kept = 0
            new = {name for each in names_by_text for name in each if name not in self._known}
            if new:
                self._learn(new)
            return [[pair for name in each for pair in self._known[name]] for each in names_by_text]

    def _learn(self, new: Iterable[str]) -> None:
        words_by_name = {name: list(words_of(name)) for name in new}
        every = {word for words in words_by_name.values() for word in words if not word.isdigit()}
        stems = {word: stem for word in every if (stem := self._stem_by_script(word)) is not None}
        stems |= self._stems_by_word([*(every - stems.keys())])
        self._known.update(
            (name, [(word, stems.get(word, word)) for word in words]) for name, words in words_by_name.items()
        )
        self._kept += sum(map(len, words_by_name.values()))

    def _stem_by_script(self, word: str) -> str | None:
        """Return the stem of a word with letters of one of the scripts; None for other words."""
        letter = None if word.isascii() else _LETTERS.search(word)
        if letter is None or letter.lastgroup is None:
            return None
        return self._stem_in(letter.lastgroup, word)

    def _stem_in(self, language: str, word: str) -> str:
        if language not in self._snowball:
            self._snowball[language] = _snowball_class(language)()
        stem: str = self._snowball[language].stemWord(_WITHOUT_BREVE.sub("й", word) if language == "russian" else word)
        return stem

    def forms_of(self, word: str, known: Iterable[str], language: str) -> list[str]:
        """Return those of *known* that are forms of *word* in *language*."""
        with self._lock:
            stem = self._stem_in(language, word)
            return [each for each in known if self._stem_in(language, each) == stem]

    def _stems_by_word(self, every: Sequence[str]) -> dict[str, str]:
        if not every:
            return {}
        self._engine.execute("BEGIN")
        self._engine.executemany("INSERT INTO word(rowid, text) VALUES (?, ?)", enumerate(every))
        stems = {every[number]: stem for stem, number in self._engine.execute("SELECT term, doc FROM stem")}
        self._engine.execute("INSERT INTO word(word) VALUES ('delete-all')")
        self._engine.execute("COMMIT")
        return stems
