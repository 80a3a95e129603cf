"""The working tree of the repository of a root: its files, their blob ids and web addresses.

Ignore rules follow gitignore(5) and are given as text. Without git, a short walk lists the files.
"""

from __future__ import annotations

import os
import re
import stat
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial
from hashlib import sha1, sha256
from pathlib import Path
from posixpath import basename, dirname, join
from typing import NamedTuple
from urllib.parse import unquote

from jidomem.base.regex import lazy
from jidomem.base.words import misspelling_of
from jidomem.errors import InvalidRequest
from jidomem.records.file_anchor import path_of, plain_forms
from jidomem.repository import git

_CLASS = lazy(r"\[[!^]?\]?[^\]]*\]")


class IgnoreRule(NamedTuple):
    """One line of ignore rules: its pattern, relative to the folder of its file; whether it applies only to folders;
    whether it includes again.
    """

    pattern: re.Pattern[str]
    folders_only: bool
    keeps: bool


def is_ignored(path: str, rules_of: Sequence[tuple[str, str]]) -> bool:
    r"""Return whether git ignores the file *path*, or a folder above it.

    *rules_of* are the texts of the applicable rules, each with its folder (`""` for the top), in the order of
    increasing precedence.

    >>> is_ignored("build/a.o", [("", "*.o\n!keep.o")]), is_ignored("keep.o", [("", "*.o\n!keep.o")])
    (True, False)
    """
    parts = path.split("/")
    return any(_decided("/".join(parts[:depth]), depth < len(parts), rules_of) for depth in range(1, len(parts) + 1))


def matches(pattern: str, path: str) -> bool:
    """Return whether *path* matches *pattern* from the top: `*` within a folder, `**` across folders.

    >>> matches("src/**/*.py", "src/a/b.py"), matches("*.py", "src/b.py")
    (True, False)
    """
    return bool(_compiled(pattern).fullmatch(path))


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(_expression(pattern.removeprefix("./").lstrip("/")), re.DOTALL)


def _decided(path: str, is_folder: bool, rules_of: Sequence[tuple[str, str]]) -> bool:
    ignored = False
    for folder, text in rules_of:
        if folder and not path.startswith(folder + "/"):
            continue
        local = path[len(folder) + 1 :] if folder else path
        for rule in _rules(text):
            if (is_folder or not rule.folders_only) and rule.pattern.fullmatch(local):
                ignored = not rule.keeps
    return ignored


@lru_cache(maxsize=256)
def _rules(text: str) -> tuple[IgnoreRule, ...]:
    return tuple(_read(text.splitlines()))


def _read(lines: Iterable[str]) -> Iterable[IgnoreRule]:
    for line in lines:
        body = re.sub(r"(?<!\\) +$", "", line)
        if not body or body.startswith("#"):
            continue
        keeps = body.startswith("!")
        body = body[keeps:]
        folders_only = body.endswith("/")
        body = body.rstrip("/")
        if body:
            anchored = "/" in body
            yield IgnoreRule(re.compile(("" if anchored else "(?:.*/)?") + _expression(body.lstrip("/")), re.DOTALL),
                       folders_only, keeps)  # fmt: skip


def _expression(glob: str) -> str:
    regex, at = "", 0
    while at < len(glob):
        if glob.startswith("**/", at) and (at == 0 or glob[at - 1] == "/"):
            regex, at = regex + "(?:.*/)?", at + 3
        elif glob[at:] == "**" and (at == 0 or glob[at - 1] == "/"):
            regex, at = regex + ".+", at + 2
        elif glob[at] == "*":
            regex, at = regex + "[^/]*", at + 1
        elif glob[at] == "?":
            regex, at = regex + "[^/]", at + 1
        elif glob[at] == "[" and (match := _CLASS.match(glob, at)):
            regex, at = regex + _class(match[0]), match.end()
        elif glob[at] == "\\" and at + 1 < len(glob):
            regex, at = regex + re.escape(glob[at + 1]), at + 2
        else:
            regex, at = regex + re.escape(glob[at]), at + 1
    return regex


def _class(text: str) -> str:
    body = text[1:-1]
    negated = body[:1] in ("!", "^")
    signs = body[negated:].replace("\\", "\\\\").replace("[", "\\[").replace("]", "\\]").replace("^", "\\^")
    signs = signs.replace("&&", "&\\&").replace("||", "|\\|").replace("~~", "~\\~").replace("--", "-\\-")
    try:
        re.compile(f"[{signs}]")
    except re.error:
        return "(?!)"
    return f"(?!/)[{'^' if negated else ''}{signs}]"


#: The largest file that is anchored, and the most bytes that are read for one memory.
LARGEST, AT_ONCE = 4 * 1024 * 1024, 16 * 1024 * 1024
_FILE = lazy(r"(?!/)[^\s:*?\[\]{}\\]+/[^\s:*?\[\]{}\\/]*[^\s:*?\[\]{}\\/.]\.[A-Za-z0-9]{1,10}")
#: A path below a folder, and the name of a file without a folder.
_BELOW, _NAME = lazy(r"[^\s:*?\[\]{}\\]*[^\s:*?\[\]{}\\/]"), lazy(r"[\w.-]*\w\.[A-Za-z]\w{0,9}")
#: A pattern, or a folder that ends with a slash.
_PLACE = lazy(r"(?!/|\.\./)[^\s:]*(?:[*\[{?][^\s:]*|/)")
_RULES = 256 * 1024
_SHA256 = lazy(r"^\s*objectformat\s*=\s*sha256\s*$", re.IGNORECASE | re.MULTILINE)


class Worktree(NamedTuple):
    """A checked out repository: its `top` folder, and the `base` to which the paths of memories are relative.

    `root` is the memory root in it, `git` the git folder shared by the worktrees of the repository.
    """

    top: Path
    base: Path
    root: Path
    git: Path

    @classmethod
    def around(cls, root: Path) -> Worktree | None:
        """Return the repository around *root*, or None.

        Paths are relative to the folder of `.jidomem`; for a root with another name, to the top.
        """
        for top in (root, *root.parents):
            git = _git_folder(top / ".git")
            if git is not None:
                return cls(top, root.parent if root.name == ".jidomem" and root != top else top, root, git)
        return None

    def blobs(self, entries: Iterable[str]) -> dict[str, str]:
        """Return the blob id of each file of the repository among *entries*, by path, as git computes it.

        Ignored files, files behind symbolic links, files of the root itself and large files are left out.
        """
        ids: dict[str, str] = {}
        left, algorithm = AT_ONCE, sha256 if _SHA256.search(self.configuration()) else sha1
        for path in dict.fromkeys(filter(None, map(path_of, entries))):
            data = self.read(path)
            if data is None or len(data) > left or is_ignored(self._from_top(path), self._rules_of(path)):
                continue
            left -= len(data)
            ids[path] = blob_id(data, algorithm().name)
        return ids

    def read(self, path: str) -> bytes | None:
        """Return the content of the file at *path*; None if it is missing, too large, or behind a link."""
        return None if (self.base / path).is_relative_to(self.root) else plain_file(self.base / path)

    def has(self, path: str) -> bool:
        """Return whether there is a file or folder at *path*."""
        return os.path.lexists(self.base / path)

    def place(self, entry: str) -> str:
        """Return the path below the base that *entry* names in another form, and any other *entry* unchanged.

        Other forms are an absolute path, a `file:` address, the web address of a file in a remote, and an existing path
        with the separators of Windows, after an `@` or before the numbers of lines.
        """
        if "://" in entry and not entry.startswith("file:/"):
            return Addresses.of(self).path(entry) or entry
        if entry and not entry.startswith("/") and self.has(entry):
            return entry
        paths = [(path_below(self.base, Path(form)) if form[:1] == "/" else form) for form in plain_forms(entry)]
        path = next((path for path in paths if path and self.has(path)), None)
        if path is None and entry.startswith(("/", "file:/")):  # a file that is not there yet
            path = paths[-1]
        return entry if path is None else path + "/" * entry.endswith("/")

    def absent(self, entries: Iterable[str]) -> dict[str, str | None]:
        """Return those of *entries* that name a missing file, each with the existing path that it probably misspells.

        An entry names a file if it has a folder and an extension, or begins with a folder that exists, and has no
        characters of a pattern or an address. A name without a folder counts if one file of the repository has it.
        """
        named = [entry for entry in entries if not self.has(entry)]
        missing = [entry for entry in named if _FILE.fullmatch(entry)]
        left_out = self.left_out() if missing else {}
        nearest = {entry: self._respelt(entry) for entry in missing if entry not in left_out}
        find = PathFinder(self.base).of("")
        nearest |= {entry: path for entry in named if _NAME.fullmatch(entry) and (path := find(entry)) is not None}
        lacking = [entry for entry in named if entry not in {*nearest, *left_out} and self.is_missing(entry)]
        return nearest | {entry: None if _PLACE.fullmatch(entry) else self._respelt(entry) for entry in lacking}

    def _is_below_folder(self, entry: str) -> bool:
        folder, slash, rest = entry.partition("/")
        is_below = folder and slash and _BELOW.fullmatch(rest) and not _FILE.fullmatch(entry)
        return bool(is_below) and (self.base / folder).is_dir()

    def is_missing(self, place: str) -> bool:
        """Return whether *place* is missing: a pattern without a file, a folder `name/` or below one that exists.

        A search that meets too many files finds none missing; a text with blanks or a colon is no place. Without `*`,
        the signs of a pattern are those of a name.
        """
        if "\\" in place or self.has(place) or not (_PLACE.fullmatch(place) or self._is_below_folder(place)):
            return False
        folder = place.rstrip("/") + "/"
        if any(path.startswith(folder) or path == place or matches(place, path) for path in self.left_out()):
            return False
        if "*" not in place:
            return True
        folder = place[: place.index("*")].rpartition("/")[0]
        left = MOST
        for at, folders, names in os.walk(self.base / folder):
            folders[:] = [name for name in folders if name not in _BUILT and name not in (".git", self.root.name)]
            below = Path(at).relative_to(self.base).as_posix()
            if any(matches(place, name if below == "." else f"{below}/{name}") for name in names):
                return False
            left -= len(names)
            if left < 0:
                return False
        return True

    def left_out(self) -> Mapping[str, str]:
        """Return the blob id of each tracked file below the base that a sparse checkout leaves out, by path."""
        may_be_sparse = (self.git / "info" / "sparse-checkout").exists() or (self.git / "worktrees").is_dir()
        return git.left_out(self.base) if may_be_sparse else {}

    def _respelt(self, path: str) -> str | None:
        respelt: list[str] = []
        for part in path.split("/"):
            folder = self.base.joinpath(*respelt)
            if part == ".." or not os.path.lexists(folder / part):
                try:
                    part = misspelling_of(part, os.listdir(folder)) or ""
                except OSError:
                    return None
                if part in ("", ".git"):
                    return None
            respelt.append(part)
        return "/".join(respelt)

    def configuration(self) -> str:
        """Return the text of the configuration of the repository, empty if there is none."""
        return _text(self.git / "config")

    def _from_top(self, path: str) -> str:
        return (self.base / path).relative_to(self.top).as_posix()

    def _rules_of(self, path: str) -> list[tuple[str, str]]:
        parts = self._from_top(path).split("/")[:-1]
        folders = ["/".join(parts[:depth]) for depth in range(len(parts) + 1)]
        files = [("", self.git / "info" / "exclude"), *((at, self.top / at / ".gitignore") for at in folders)]
        return [(folder, text) for folder, file in files if (text := _text(file))]


def path_below(base: Path, whole: Path) -> str | None:
    """Return the path of *whole* relative to the folder *base*, or None if it is outside.

    Links in the path are followed, except the last part.
    """
    try:
        real = Path(os.path.realpath(whole.parent)) / whole.name if whole.name != ".." else whole.resolve()
    except (OSError, ValueError):
        return None
    return real.relative_to(base).as_posix() if real.is_relative_to(base) else None


def plain_file(whole: Path, largest: int = LARGEST) -> bytes | None:
    """Return the content of a file; None if it is missing, larger than *largest* bytes, or behind a link."""
    try:
        if os.path.realpath(whole) != str(whole):
            return None
        file = os.open(whole, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError):
        return None
    status = os.fstat(file)
    if not stat.S_ISREG(status.st_mode) or status.st_size > largest:
        os.close(file)
        return None
    with os.fdopen(file, "rb") as opened:
        data = opened.read(largest + 1)
    return data if len(data) <= largest else None


def blob_id(data: bytes, algorithm: str = "sha1") -> str:
    r"""Return the id that git computes for the content of a file.

    >>> blob_id(b"hello\n")
    'ce013625030ba8dba906f756967f9e9ca394464a'
    """
    content = b"blob %d\0" % len(data) + data
    return (sha256(content) if algorithm == "sha256" else sha1(content, usedforsecurity=False)).hexdigest()


def is_blob(data: bytes, blob: str) -> bool:
    """Return whether *blob* is the id of *data*, with any line endings."""
    algorithm = "sha256" if len(blob) == 64 else "sha1"
    if blob_id(data, algorithm) == blob:
        return True
    plain = data.replace(b"\r\n", b"\n")
    return any(blob_id(other, algorithm) == blob for other in (plain, plain.replace(b"\n", b"\r\n")) if other != data)


def _git_folder(path: Path) -> Path | None:
    if path.is_dir():
        return path if (path / "HEAD").is_file() else None
    text = _text(path)
    if not text.startswith("gitdir: "):
        return None
    own = (path.parent / text[8:].strip()).resolve()
    shared = _text(own / "commondir").strip()
    return (own / shared).resolve() if shared else own


def _text(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            return opened.read(_RULES).decode("utf-8", "replace")
    except OSError:
        return ""


_REMOTE_URL = lazy(r"^\s*url\s*=\s*(\S+)\s*$", re.MULTILINE)
#: `https://host/owner/name.git`, `ssh://git@host/owner/name` and `git@host:owner/name.git`.
_REMOTE = lazy(r"(?:[a-z+]+://)?(?:[^@/\s]+@)?([^:/\s]+)(?::\d+)?[:/]+(\S+?)(?:\.git)?/*", re.IGNORECASE)
_ADDRESS = lazy(
    r"https?://([^/\s]+)/([^\s?#]{1,300}?)/(?:-/)?(?:blob|tree|blame|raw|edit|src/(?:branch|tag|commit))/([^\s?#]+)",
    re.IGNORECASE,
)


class Addresses(NamedTuple):
    """The web addresses of the files below *base*; *names* are the remotes of their repository: `host/owner/name`."""

    top: Path
    base: Path
    names: frozenset[str]

    @classmethod
    def of(cls, tree: Worktree) -> Addresses:
        """Return the addresses of the files of *tree*, whose remotes are read from its configuration."""
        return cls(tree.top, tree.base, remote_names(tree.configuration()))

    def path(self, address: str) -> str | None:
        """Return the path below the base for *address*, or None if it belongs to no remote or is outside.

        The branch is the shortest beginning of the address after which the rest is an existing path, else its first
        word.
        """
        match = _ADDRESS.match(address)
        if match is None or f"{match[1]}/{match[2]}".casefold() not in self.names:
            return None
        words = unquote(match[3]).rstrip("/").split("/")
        paths = ["/".join(words[count:]) for count in range(1, len(words))]
        path = next((path for path in paths if path_of(path) and os.path.lexists(self.top / path)), None)
        path = path_of(path or next(iter(paths), ""))
        return None if path is None else path_below(self.base, self.top / path)


def remote_names(config: str) -> frozenset[str]:
    r"""Return the remotes in the configuration of a repository, each as `host/owner/name`.

    >>> sorted(remote_names('[remote "origin"]\n\turl = git@github.com:Ana/shop.git\n'))
    ['github.com/ana/shop']
    """
    remotes = (_REMOTE.fullmatch(url) for url in _REMOTE_URL.findall(config))
    return frozenset(f"{remote[1]}/{remote[2]}".casefold() for remote in remotes if remote)


#: The time limit of git in seconds, and without git the most entries and the greatest depth of a walk.
SECONDS, MOST, DEEPEST = 20.0, 20_000, 6
#: The most files of a folder in which names without a folder are looked up.
MOST_NAMED = 500_000
#: Folders that a walk does not enter, and the hidden folders that it does enter.
_BUILT = frozenset(("node_modules", "venv", "__pycache__", "target", "dist", "build", "vendor", "site-packages"))
_HIDDEN = frozenset(
    (".adr", ".beads", ".claude", ".codex", ".cursor", ".gemini", ".github", ".memory", ".vscode", ".windsurf")
)


class FileListing(NamedTuple):
    """The paths of files below a folder, sorted; whether they are complete, and whether git listed them."""

    paths: tuple[str, ...]
    is_whole: bool
    by_git: bool


def files_by_git(base: Path) -> tuple[str, ...] | None:
    """Return the files below *base* that git tracks or would add, sorted; None without git or a repository.

    A repository in it is listed as a folder.
    """
    try:
        words = ("ls-files", "-z", "--cached", "--others", "--exclude-standard")
        done = git.ask(base, *words, seconds=SECONDS)
    except InvalidRequest:  # git is missing
        return None
    if done.returncode != 0:
        return None
    names = done.stdout.decode("utf-8", "surrogateescape").split("\0")
    return tuple(sorted(set(filter(None, names))))


def listing(base: Path) -> FileListing:
    """Return the files below *base*: those that git tracks or would add, else a walk of at most MOST entries."""
    paths = files_by_git(base)
    return _walked(base) if paths is None else FileListing(paths, is_whole=True, by_git=True)


class PathFinder:
    """A finder of the files that pages of the folder *base* name, relative to the folder of the page or to *base*.

    A name without a folder that is in neither stands for the only file below *base* with that name; for none if there
    are several. A pattern that begins with `**/` stands for itself if it matches a file. The files are listed once, at
    the first such name. A web address of a file in a remote of the repository stands for that file.
    """

    def __init__(self, base: Path) -> None:
        self.base = base.resolve()
        self._has = lru_cache(maxsize=4096)(self._is_there)
        tree = Worktree.around(self.base)
        self._addresses = None if tree is None else Addresses.of(tree)._replace(base=self.base)

    def of(self, page: str) -> Callable[[str], str | None]:
        """Return the function from a word of *page* to the path that it names, or None."""
        return partial(self._matches, dirname(page))

    def _matches(self, folder: str, word: str) -> str | None:
        if "://" in word:
            path = None if self._addresses is None else self._addresses.path(word)
            return path if path is not None and self._has(path) else None
        if word.startswith("**/"):
            return word if any(matches(word, path) for path in self._paths) else None
        paths = (path_of(join(folder, word)), path_of(word))
        path = next((path for path in paths if path is not None and self._has(path)), None)
        return path if path is not None or "/" in word else self._only_one(word)

    def _only_one(self, name: str) -> str | None:
        path = self._only.get(name)
        return path if path is not None and self._has(path) else None

    @cached_property
    def _only(self) -> Mapping[str, str]:
        counts = Counter(map(basename, self._paths))
        return {name: path for path in self._paths if counts[name := basename(path)] == 1}

    @cached_property
    def _paths(self) -> tuple[str, ...]:
        listed = listing(self.base)
        return listed.paths if listed.is_whole and len(listed.paths) <= MOST_NAMED else ()

    def _is_there(self, path: str) -> bool:
        whole = self.base / path
        try:
            return os.path.realpath(whole) == str(whole) and whole.exists()
        except (OSError, ValueError):
            return False


def _walked(base: Path) -> FileListing:
    """Return the files of a walk, the nearest folders first; links are not followed."""
    paths, waiting, seen = list[str](), deque([("", 0)]), 0
    while waiting and seen < MOST:
        folder, depth = waiting.popleft()
        if depth > DEEPEST:
            continue
        try:
            entries = sorted(os.scandir(base / folder), key=lambda entry: entry.name)
        except OSError:
            continue
        for entry in entries:
            seen += 1
            path = join(folder, entry.name)
            if not entry.is_dir(follow_symlinks=False):
                paths.append(path)
            elif entry.name not in _BUILT and (entry.name in _HIDDEN or not entry.name.startswith(".")):
                waiting.append((path, depth + 1))
    return FileListing(tuple(sorted(paths)), is_whole=not waiting, by_git=False)


_ENTRY = lazy(r"(\d{6}) ([0-9a-f]{40}|[0-9a-f]{64}) (\d)\t(.*)", re.DOTALL)
_SEEN = lazy(
    r"\s*ctime: \d+:\d+\n  mtime: (\d+):(\d+)\n  dev: \d+\tino: \d+\n  uid: \d+\tgid: \d+\n  size: (\d+)\tflags: \w+\n"
)
#: Folders without code of the project, for a walk without git.
_NEVER = frozenset((".git", ".jidomem", ".venv", "__pycache__", "node_modules", "_build", ".elixir_ls", ".tox"))

_UNSETTLED = "unresolved merge: resolve it, then git add"


@dataclass(slots=True)
class TrackedFiles:
    """The files below `base`, by relative path, with the blob id if git has an up-to-date one.

    `revision` is the one checked out, empty without git. `passed` has the reason for each skipped path; names that are
    not valid text are written in ASCII.
    """

    base: Path
    files: dict[str, str | None] = field(default_factory=dict)
    revision: str = ""
    passed: dict[str, str] = field(default_factory=dict)

    def read(self, path: str, largest: int) -> bytes | None:
        """Return the content of a file; None if it is missing, larger than *largest* bytes, or behind a link."""
        return plain_file(self.base / path, largest)


def tracked(base: Path, below: str, endings: tuple[str, ...]) -> TrackedFiles:
    """Return the files below the folder *below* of *base* with these *endings*, without ignored files and links.

    A file unchanged since the index of git was written has the blob id of the index and is not read; without git, none
    has one.
    """
    base = base.resolve()
    listed_files = TrackedFiles(base)
    known = _known(base, below, endings, listed_files.passed)
    listed = dict.fromkeys(_walk_files(base, below, endings)) if known is None else known
    for path in sorted(listed):
        if _is_text(path):
            listed_files.files[path] = listed[path]
        else:
            listed_files.passed[_written(path)] = "its name is not valid text: rename it"
    if known is None:
        return listed_files
    head = git.read_git(base, "rev-parse", "--verify", "-q", "HEAD")
    listed_files.revision = head.decode("ascii", "replace").strip() if head else ""
    return listed_files


def _known(base: Path, below: str, endings: tuple[str, ...], passed: dict[str, str]) -> dict[str, str | None] | None:
    """Return the files that git lists; None without git, and if *base* is in no repository or ignored in one.

    Files with an unresolved merge are added to *passed*.
    """
    place = ["--", f":(literal){below}" if below else "."]
    try:
        known = git.read_git(base, "ls-files", "-z", "-s", "--debug", *place)
        new = git.read_git(base, "ls-files", "-z", "-o", "--exclude-standard", *place)
        index = git.read_git(base, "rev-parse", "--git-path", "index")
        if known is None or new is None or index is None or git.ask(base, "check-ignore", "-q", ".").returncode == 0:
            return None
    except InvalidRequest:
        return None
    written = _status(base / os.fsdecode(index.rstrip(b"\n"))) or (0, 0)
    files: dict[str, str | None] = {}
    for path, blob, seen in _entries(known.decode("utf-8", "surrogateescape")):
        if not blob:
            passed |= {_written(path): _UNSETTLED} if path.endswith(endings) else {}
        elif path.endswith(endings) and (now := _status(base / path)) is not None:
            # the entry of a file changed at or after the time of the index is unreliable ("racy git")
            files[path] = blob if seen == now and now[0] < written[0] else None
    for path in new.decode("utf-8", "surrogateescape").split("\0"):
        if path.endswith(endings) and _status(base / path) is not None:
            files[path] = None
    return files


def _entries(text: str) -> Iterator[tuple[str, str, tuple[int, int] | None]]:
    """Yield path, blob id, and modification time in nanoseconds and size from the index of git.

    Time and size are None if the output has an unknown form. A file with an unresolved merge has no blob id; links are
    left out.
    """
    waiting: tuple[str, str] | None = None
    for entry in text.split("\0"):
        seen = _SEEN.match(entry)
        if waiting is not None:
            yield *waiting, (int(seen[1]) * 10**9 + int(seen[2]), int(seen[3])) if seen else None
        match = _ENTRY.fullmatch(entry[seen.end() :] if seen else entry)
        is_file = match and match[1].startswith("100")
        waiting = (match[4], match[2] if match[3] == "0" else "") if match and is_file else None


def _walk_files(base: Path, below: str, endings: tuple[str, ...]) -> Iterator[str]:
    """Yield the files in order, without git; those in a .gitignore are left out."""
    for folder, folders, files in os.walk(base / below, followlinks=False):
        at = Path(folder).relative_to(base).as_posix().removeprefix(".").strip("/")
        rules = _folder_rules(base, at)
        prefix = f"{at}/" if at else ""
        never = _NEVER | ({"deps"} if "mix.exs" in files else set())  # the dependencies of mix
        folders[:] = sorted(
            name for name in folders if name not in never and not is_ignored(f"{prefix}{name}/x", rules)
        )
        for name in sorted(files):
            path = prefix + name
            if name.endswith(endings) and not is_ignored(path, rules) and _status(base / path):
                yield path


def _folder_rules(base: Path, folder: str) -> list[tuple[str, str]]:
    parts = folder.split("/") if folder else []
    above = ["/".join(parts[:depth]) for depth in range(len(parts) + 1)]
    return [(at, text) for at in above if (text := _text(base / at / ".gitignore"))]


def _is_text(path: str) -> bool:
    try:
        path.encode("utf-8")
    except UnicodeError:
        return False
    return "\0" not in path and "\n" not in path


def _written(path: str) -> str:
    return path if _is_text(path) else ascii(path)[1:-1]


def _status(file: Path) -> tuple[int, int] | None:
    try:
        status = os.lstat(file)
    except (OSError, ValueError):
        return None
    return (status.st_mtime_ns, status.st_size) if stat.S_ISREG(status.st_mode) else None
