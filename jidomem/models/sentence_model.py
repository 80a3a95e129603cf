"""The sentence model: an embedder on this machine, from a folder of the user with an ONNX model and its tokenizer.

Only the user's own configuration names the folder. Nothing is downloaded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from hashlib import file_digest, sha256
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

import orjson

from jidomem.errors import JidomemError, ModelUnavailable
from jidomem.models import local_embedder
from jidomem.records.interfaces import Vector, texts_of

#: The places of the model in its folder, and of its tokenizer and its pooling.
MODELS, TOKENIZER, POOLING = ("model.onnx", "onnx/model.onnx"), "tokenizer.json", "1_Pooling/config.json"
#: The most tokens of a text that are read, unless the tokenizer truncates texts to fewer.
MOST_TOKENS = 512
#: The outputs with one vector a text, and with one vector a token, which is pooled.
SENTENCE, TOKENS = ("sentence_embedding",), ("last_hidden_state", "token_embeddings")
#: The packages that a model in a folder needs.
NEEDED = ("numpy", "onnxruntime", "tokenizers")
_INPUTS = ("input_ids", "attention_mask", "token_type_ids")
_PROBE = "a"
_LOADING = Lock()
#: The network of a folder: returns its outputs by name for one text, or for a pair, with the mask of the tokens.
Network = Callable[..., tuple[Mapping[str, Any], Any]]


class ModelFiles(NamedTuple):
    """The files of a model in a folder, each with its size, inode and time of change."""

    folder: Path
    model: Path
    states: tuple[tuple[str, int, int, int], ...]

    @classmethod
    def of(cls, folder: Path) -> ModelFiles:
        """Return the files in *folder*; raise ModelUnavailable if one is missing or unreadable."""
        hint = f"put {' or '.join(MODELS)} and {TOKENIZER} into {folder}, or correct path"
        try:
            if not folder.is_dir():
                raise ModelUnavailable(f"there is no folder {folder}", hint=hint)
            model = next((folder / name for name in MODELS if (folder / name).is_file()), None)
            if model is None or not (folder / TOKENIZER).is_file():
                lacking = TOKENIZER if model else " or ".join(MODELS)
                raise ModelUnavailable(f"{folder} has no {lacking}", hint=hint)
            weights = sorted(model.parent.glob("model.onnx*"))  # weights of large models are in a file beside the graph
            paths = [*weights, folder / TOKENIZER, *([folder / POOLING] if (folder / POOLING).exists() else [])]
            states = [(str(path), state.st_size, state.st_ino, state.st_mtime_ns)
                      for path in paths for state in [path.stat()]]  # fmt: skip
        except OSError as error:
            raise _unreadable(error, folder) from error
        return cls(folder, model, tuple(states))

    def check_unchanged(self) -> None:
        """Raise ModelUnavailable if a file was replaced: its vectors would have the name of another model."""
        if ModelFiles.of(self.folder) != self:
            raise ModelUnavailable(f"the model in {self.folder} has changed", hint="start this process again")


@lru_cache(8)
def digest_of(files: ModelFiles) -> str:
    """Return the digest of the contents of *files*."""
    digest = sha256()
    try:
        for path, *_ in files.states:
            with open(path, "rb") as file:
                digest.update(file_digest(file, "sha256").digest())
    except OSError as error:
        raise _unreadable(error, files.folder) from error
    files.check_unchanged()
    return digest.hexdigest()


def network(files: ModelFiles) -> Network:
    """Return the network of *files*, which is loaded once in a process; raises ModelUnavailable."""
    with _LOADING:
        return _load(files)


class SentenceEmbedder:
    """An embedder from a folder with an ONNX model and its tokenizer; the model is loaded at the first use.

    Each text is embedded by itself, so that it has the same vector in every batch; vectors have length 1. A blank text
    has the zero vector, which is similar to no other. The name has a digest of the files and of *text_prefix*.
    """

    def __init__(self, folder: Path, query_prefix: str = "", text_prefix: str = "") -> None:
        """Use the model in *folder*, with *query_prefix* before each query and *text_prefix* before each text.

        Raises ModelUnavailable if a file is missing, Failed `missing_extra` if a package is not installed.
        """
        if lacking := local_embedder.missing(NEEDED):
            raise local_embedder.not_there(lacking)
        self._files = ModelFiles.of(folder)
        self._pooling = _pooling(folder)
        self._query_prefix, self._text_prefix = query_prefix, text_prefix
        identity = sha256(f"{digest_of(self._files)} {text_prefix}".encode()).hexdigest()
        self._name, self._size = f"{folder.name}-{identity[:16]}", 0

    @property
    def name(self) -> str:
        """Return the name of the folder, and the digest of the files and of the prefix of texts."""
        return self._name

    @property
    def why(self) -> JidomemError | None:
        """Return the reason why the model cannot be used, None if there is none; loads it."""
        try:
            self.dimensions()
        except ModelUnavailable as error:
            return error
        return None

    def dimensions(self) -> int:
        """Return the number of dimensions, as the model returns them for a short text; raises ModelUnavailable."""
        self._size = self._size or len(self._vector(_PROBE))
        return self._size

    def generate(self, texts: Sequence[str]) -> list[Vector]:
        """Return one vector for each of *texts*, in order; raises ModelUnavailable."""
        return self._vectors(self._text_prefix, texts)

    def generate_queries(self, queries: Sequence[str]) -> list[Vector]:
        """Return one vector for each of *queries*, in order; raises ModelUnavailable."""
        return self._vectors(self._query_prefix, queries)

    def _vectors(self, prefix: str, texts: Sequence[str]) -> list[Vector]:
        given, size = texts_of(texts), self.dimensions()

        def vector(text: str) -> Vector:
            made = self._vector(prefix + text) if text.strip() else [0.0] * size
            if len(made) != size:
                raise self._unusable(f"returned a vector of {len(made)} numbers, not {size} as before")
            return made

        return local_embedder.map_texts(vector, given)

    def _vector(self, text: str) -> Vector:
        import numpy as np

        outputs, mask = network(self._files)(text)
        name = next((name for name in (*SENTENCE, *TOKENS) if name in outputs), None)
        if name is None:
            expected, present = ", ".join((*SENTENCE, *TOKENS)), ", ".join(outputs)
            raise self._unusable(f"has no output {expected}; it has {present}", "export it for feature extraction")
        values = np.asarray(outputs[name], np.float32)
        shape = (1,) if name in SENTENCE else (1, len(mask))
        if values.shape[:-1] != shape:
            raise self._unusable(f"returned {name} of shape {values.shape} for {len(mask)} tokens")
        if name in TOKENS and not self._pooling:
            raise self._unusable(
                f"has layers after {name} that its ONNX file lacks", "use an export with the output sentence_embedding"
            )
        if name in SENTENCE:
            pooled = values[0]
        else:
            pooled = values[0, 0] if self._pooling == "cls" else values[0][mask == 1].mean(axis=0)
        length = float(np.linalg.norm(pooled))
        if not 0 < length < float("inf"):  # also false for NaN
            raise self._unusable("returned a vector of zero or infinite length, or with a value that is no number")
        unit: list[float] = (pooled / length).tolist()
        return unit

    def _unusable(self, what: str, hint: str = "use another export of the model") -> ModelUnavailable:
        return ModelUnavailable(f"{self._files.model} {what}", hint=hint)


def _pooling(folder: Path) -> str:
    """Return the pooling that the model in *folder* is configured for: mean or cls; empty if layers follow it."""
    if any(folder.glob("[2-9]_Dense")):
        return ""
    path = folder / POOLING
    try:
        content = path.read_bytes() if path.exists() else b"{}"
        config = orjson.loads(content)
        modes = {name.removeprefix("pooling_mode_") for name, value in config.items() if value is True}
    except OSError as error:
        raise _unreadable(error, folder) from error
    except (ValueError, AttributeError) as error:
        raise ModelUnavailable(f"{path} is no JSON object", hint="copy it from the model again") from error
    modes &= {"cls_token", "mean_tokens", "max_tokens", "mean_sqrt_len_tokens", "weightedmean_tokens", "lasttoken"}
    modes |= {config["pooling_mode"]} if isinstance(config.get("pooling_mode"), str) else set()
    mode = {"cls_token": "cls", "mean_tokens": "mean"}.get(*modes, *modes) if len(modes) == 1 else "mean"
    if len(modes) > 1 or mode not in ("cls", "mean"):
        shown = " and ".join(sorted(modes))
        raise ModelUnavailable(f"{path} wants the pooling {shown}", hint="use a model with pooling mean or cls")
    return mode


@lru_cache(2)
def _load(files: ModelFiles) -> Network:
    import numpy as np
    from tokenizers import Tokenizer

    onnxruntime = local_embedder.import_onnxruntime()
    path = files.folder / TOKENIZER
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # errors of tokenizers have no common class
        hint = "copy tokenizer.json from the model again, or upgrade tokenizers"
        raise ModelUnavailable(f"{path} is no tokenizer: {error}", hint=hint) from error
    limit = min(MOST_TOKENS, (tokenizer.truncation or {}).get("max_length", MOST_TOKENS))
    tokenizer.enable_truncation(limit)
    tokenizer.no_padding()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1  # texts run in parallel, not parts of one
    options.log_severity_level = 3
    try:
        session = onnxruntime.InferenceSession(str(files.model), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # errors of onnxruntime have no common class
        hint = "copy the file from the model again, or upgrade onnxruntime"
        raise ModelUnavailable(f"onnxruntime cannot load {files.model}: {error}", hint=hint) from error
    files.check_unchanged()
    inputs = {each.name: each.type for each in session.get_inputs()}
    if "input_ids" not in inputs or any(
        name not in _INPUTS or kind != "tensor(int64)" for name, kind in inputs.items()
    ):
        shown = ", ".join(f"{name} {kind}" for name, kind in inputs.items())
        detail = f"{files.model} has the inputs {shown}; supported are {', '.join(_INPUTS)} of tensor(int64)"
        raise ModelUnavailable(detail, hint="use another export of the model")
    names = [each.name for each in session.get_outputs()]

    def run(text: str, pair: str | None = None) -> tuple[Mapping[str, Any], Any]:
        try:
            encoding = tokenizer.encode(text, pair)
            columns = (encoding.ids, encoding.attention_mask, encoding.type_ids)
            arrays = {name: np.array([each], np.int64) for name, each in zip(_INPUTS, columns, strict=True)}
            outputs = session.run(None, {name: arrays[name] for name in inputs})
        except Exception as error:
            hint = "use the tokenizer.json of the same model"
            raise ModelUnavailable(f"{files.model} failed on a text: {error}", hint=hint) from error
        return dict(zip(names, outputs, strict=True)), arrays["attention_mask"][0]

    return run


def _unreadable(error: OSError, folder: Path) -> ModelUnavailable:
    detail = f"the model in {folder} cannot be read: {error.filename or folder}: {error.strerror or error}"
    return ModelUnavailable(detail, hint="let your user read the folder and its files")
