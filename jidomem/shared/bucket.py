"""A folder of an S3 bucket, asked through obstore: conditional puts whose outcome is settled, and errors by name."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, NotModifiedError, PreconditionError
from obstore.store import S3Store

from jidomem.errors import Failed, InvalidRequest, JournalDamaged
from jidomem.shared.log import File

if TYPE_CHECKING:
    from obstore import ListResult, ObjectMeta, PutMode
    from obstore.store import ClientConfig, RetryConfig, S3Config

#: How many seconds the store may say nothing.
ANSWER = 10.0
#: How large what is put may be before it is given minutes, not seconds, to arrive.
LARGE = 1 << 20
_MINUTES = 300.0
_ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_REFUSED = (AlreadyExistsError, PreconditionError, FileNotFoundError)
_ERRORS = (BaseError, OSError)
_FORM = "an object store is named as in: --root s3://BUCKET/PREFIX"


@dataclass(frozen=True, slots=True)
class _Cause:
    """What an error speaks of, and what to do; whether it may pass, and whether the request may have been served."""

    mark: str
    hint: str
    passing: bool = False
    served: bool = False


_KEY = "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
_CAUSES = (
    _Cause("NoSuchBucket", "create the bucket {bucket}, or name another: --root s3://BUCKET/PREFIX"),
    _Cause("InvalidBucketName", "{bucket} is no name of a bucket: --root s3://BUCKET/PREFIX"),
    _Cause("MissingAccessKeyId", _KEY),
    _Cause("MissingSecretAccessKey", _KEY),
    _Cause("InvalidAccessKeyId", f"the store knows no such key: {_KEY}"),
    _Cause("SignatureDoesNotMatch", "the secret does not fit the key: set AWS_SECRET_ACCESS_KEY"),
    _Cause("RequestTimeTooSkewed", "set the clock of this machine"),
    _Cause("RequestTimeout", "look at the network", passing=True, served=True),
    _Cause("status: 401", f"{_KEY} to one that may use the bucket {{bucket}}"),
    _Cause("status: 403", "let the key list, read, write and delete below s3://{bucket}/{prefix}"),
    _Cause("status: 301", "set AWS_REGION to the region of the bucket {bucket}"),
    _Cause("status: 400", "look at AWS_REGION and AWS_ENDPOINT_URL: the store cannot read the request"),
    _Cause("BadScheme", "use https in AWS_ENDPOINT_URL, or, in a network you trust: export AWS_ALLOW_HTTP=true"),
    _Cause("latest/api/token", f"no key was found: {_KEY}"),
    _Cause("dns error", "nobody knows the host: look at AWS_ENDPOINT_URL and AWS_REGION", passing=True),
    _Cause("ConnectionRefused", "nothing listens there: start the store, or look at AWS_ENDPOINT_URL", passing=True),
    _Cause("kind: Connect", "look at the network, the certificate of the store and AWS_ENDPOINT_URL", passing=True),
    _Cause("kind: Timeout", "it does not answer in time: look at the store and at the network", True, True),
    _Cause("kind: Interrupted", "it cut the connection: look at the store and at the network", True, True),
    _Cause("", "look at the store and at the network", True, True),
)


class Bucket:
    """The objects below one prefix. A put that was cut off is tried again until its outcome is known."""

    def __init__(self, address: str, environment: Mapping[str, str], wait: float) -> None:
        """Take the address `s3://bucket/prefix`; nothing is asked yet. *wait* is how many seconds what
        failed for a reason that may pass is tried again.

        Of *environment* the endpoint is used, and whether it may be spoken to in plain HTTP; obstore takes the keys and
        the region from the environment of the process. Raises InvalidRequest for an address of another kind.
        """
        parts = urlsplit(address)
        if parts.scheme != "s3" or not parts.netloc or parts.query or parts.fragment or "@" in parts.netloc:
            kind = f" (there is none for {parts.scheme}:// yet)" if parts.scheme != "s3" else ""
            shown = parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()
            raise InvalidRequest(f"{shown!r} is no address of an object store{kind}", hint=_FORM)
        self.bucket, self.prefix, self.wait = parts.netloc, parts.path.strip("/"), wait
        endpoint = next((environment[name] for name in _ENDPOINTS if environment.get(name)), "")
        there = urlsplit(endpoint)
        self.name = f"s3://{self.bucket}/{self.prefix}".rstrip("/")
        if endpoint:
            self.name += f" at {there._replace(netloc=there.netloc.rpartition('@')[2], query='').geturl()}"
        plain = there.hostname in _LOOPBACK or environment.get("AWS_ALLOW_HTTP", "").lower() in ("1", "true")

        def store(answer: float, retries: int) -> S3Store:
            options: ClientConfig = {
                "allow_http": plain,
                "connect_timeout": timedelta(seconds=5),
                "read_timeout": timedelta(seconds=answer),
                "timeout": timedelta(seconds=_MINUTES),
            }
            again: RetryConfig = {"max_retries": retries, "retry_timeout": timedelta(seconds=wait)}
            where: S3Config = {"endpoint": endpoint} if endpoint else {}
            return S3Store(
                self.bucket, prefix=self.prefix or None, config=where, client_options=options, retry_config=again
            )

        try:
            self._once = store(ANSWER, 0)  # a put that is tried again behind our back could be taken for another's
            self._patient = store(ANSWER, 10)
            self._slow = store(_MINUTES, 0)
        except BaseError as error:
            raise self._unreachable(error) from error

    def probe(self) -> None:
        """Raise Failed unless the store can be reached, written to, and keeps the conditions of a put."""
        wrong: PutMode = {"e_tag": '"00000000000000000000000000000000"'}
        try:
            ignored = [
                *(["If-None-Match: *"] if self._takes("create") and self._takes("create") else []),
                *(["If-Match"] if self._takes(wrong) else []),
            ]
        except _ERRORS as error:
            raise self._unreachable(error) from error
        if ignored:
            raise Failed(
                f"{self.name} cannot hold a memory: it ignores {' and '.join(ignored)},"
                " so that writers would overwrite each other",
                hint="use a store that honours conditional puts: docs/backends.md lists them",
                code="store_unreachable",
            )

    def _takes(self, mode: PutMode) -> bool:
        """Return whether the store puts an object, which is there after the first time, on a condition."""
        try:
            obstore.put(self._once, "probe", b"1", mode=mode, use_multipart=False)
        except _REFUSED as error:
            if "NoSuchBucket" in str(error):
                raise
            return False
        return True

    def get(self, key: str, unless: str | None = None) -> File | None:
        """Return an object and its tag; None where there is none, and where its tag is *unless*.

        Raises JournalDamaged where it had that tag and is gone.
        """
        try:
            found = obstore.get(self._patient, key, options={"if_none_match": unless} if unless else None)
            return File(bytes(found.bytes()), found.meta["e_tag"] or "")
        except NotModifiedError:
            return None
        except FileNotFoundError as error:
            if "NoSuchBucket" in str(error):
                raise self._unreachable(error) from error
            if unless is not None:
                raise JournalDamaged(
                    "this object is not there any more",
                    path=f"{self.name}: {key}",
                    hint="restore the whole prefix from a backup, or begin anew there with jidomem init",
                ) from error
            return None
        except _ERRORS as error:
            raise self._unreachable(error) from error

    def exists(self, key: str) -> bool:
        """Return whether there is such an object."""
        return self.tag(key) is not None

    def tag(self, key: str) -> str | None:
        """Return the tag of an object, None where there is none; raises Failed `store_unreachable`."""
        try:
            return obstore.head(self._patient, key)["e_tag"] or ""
        except FileNotFoundError:
            return None
        except _ERRORS as error:
            raise self._unreachable(error) from error

    def put(
        self,
        key: str,
        data: bytes,
        expected: str | None,
        ours: Callable[[bytes, bool], bool],
        what: str,
        *,
        force: bool = False,
    ) -> str | None:
        """Return the tag of what was put once it is durable, None where there is another than *expected*, or any.

        *force* puts it whatever is there. *ours* is told what is there where the condition did not hold, and whether an
        earlier try may have put it, and says whether that is what was to be put. Raises Failed `outcome_unknown`,
        naming *what*, where none can tell.
        """
        store = self._slow if len(data) > LARGE else self._once
        mode: PutMode = "overwrite" if force else "create" if expected is None else {"e_tag": expected}
        doubt, pause, until = False, 0.05, time.monotonic() + self.wait
        while True:
            try:
                return obstore.put(store, key, data, mode=mode, use_multipart=False)["e_tag"] or ""
            except _REFUSED as error:
                if "NoSuchBucket" in str(error):
                    raise self._unreachable(error) from error
                there = self._after(key, doubt, what)
                if there is not None and ours(there.data, doubt):
                    return there.tag
                if (there.tag if there else None) != expected:
                    return None  # else another request was in the way: S3 says 409
                last: Exception = error
            except _ERRORS as error:
                why = _cause(error)
                doubt = doubt or why.served
                if not why.passing:
                    raise self._lost(error, doubt, what) from error
                last = error
            if time.monotonic() + pause > until:
                raise self._lost(last, doubt, what) from last
            time.sleep(pause)
            pause = min(pause * 2, 1.0)

    def _after(self, key: str, doubt: bool, what: str) -> File | None:
        """Return what is there where the condition of a put did not hold; not to know it is to know no outcome."""
        try:
            return self.get(key)
        except Failed as error:
            if not doubt:
                raise
            raise self._lost(error, doubt, what) from error

    def folders(self, folder: str) -> list[str]:
        """Return the names of the folders in a folder, sorted."""
        return _inside(folder, self._listed(folder)["common_prefixes"])

    def files(self, folder: str) -> list[str]:
        """Return the names of the objects in a folder, sorted."""
        return _inside(folder, [each["path"] for each in self._listed(folder)["objects"]])

    def _listed(self, folder: str) -> ListResult[Sequence[ObjectMeta]]:
        try:
            return obstore.list_with_delimiter(self._patient, folder)
        except _ERRORS as error:
            raise self._unreachable(error) from error

    def below(self, prefix: str) -> list[str]:
        """Return the keys of all objects in a folder and in those in it, sorted; raises Failed `store_unreachable`."""
        try:
            found = obstore.list(self._patient, prefix, chunk_size=1000).collect()
        except _ERRORS as error:
            raise self._unreachable(error) from error
        return sorted(each["path"] for each in found)

    def delete(self, keys: list[str]) -> None:
        """Remove these objects; one that is not there is removed already. Raises Failed `store_unreachable`."""
        try:
            obstore.delete(self._patient, keys)
        except FileNotFoundError as error:
            if "NoSuchBucket" in str(error):
                raise self._unreachable(error) from error
        except _ERRORS as error:
            raise self._unreachable(error) from error

    def _lost(self, error: Exception, doubt: bool, what: str) -> Failed:
        """Return what to raise where a put was given up."""
        if not doubt:
            return self._unreachable(error)
        return Failed(
            f"{self.name} could not be reached again while {what} was kept: {_said(error)}; it is kept, or it is not",
            hint=f"submit it again with the same idempotency key; {self._hint(error)}",
            code="outcome_unknown",
        )

    def _unreachable(self, error: Exception) -> Failed:
        """Return the error that says which store could not be used, why, and what to look at."""
        return Failed(f"{self.name} cannot be used: {_said(error)}", hint=self._hint(error), code="store_unreachable")

    def _hint(self, error: Exception) -> str:
        return _cause(error).hint.format(bucket=self.bucket, prefix=self.prefix)


def _inside(folder: str, paths: Sequence[str]) -> list[str]:
    """Return the names of what is in a folder, sorted: a store may list the folder itself as one of them."""
    return sorted(path.removeprefix(f"{folder}/") for path in paths if path.startswith(f"{folder}/"))


def _cause(error: Exception) -> _Cause:
    """Return the first of the causes an error speaks of."""
    said = str(error)
    return next(cause for cause in _CAUSES if cause.mark in said)


def _said(error: Exception) -> str:
    """Return what an error says in one short line; what obstore adds for its makers, and the address, left out."""
    said = str(error).partition("\n\nDebug source")[0]
    code, message = (said.partition(f"<{tag}>")[2].partition(f"</{tag}>")[0] for tag in ("Code", "Message"))
    if code:
        return f"{code}: {message}"
    mark = _cause(error).mark
    return (
        mark.removeprefix("kind: ") if mark and "/" not in mark else " ".join(said.rpartition(" - ")[2].split())[:200]
    )
