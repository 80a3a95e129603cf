"""The address of a memory root in PostgreSQL: what to connect with, and what of it may be shown."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode

from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict

from jidomem.errors import InvalidRequest

#: The schema the tables lie in, unless the address names another.
SCHEMA = "jidomem"

_SCHEMA = re.compile(r"[a-z_][a-z0-9_]{0,40}")
_FORM = "postgresql://USER@HOST:5432/DATABASE"
#: What holds where the address says nothing else: nobody waits for a machine that is gone.
_UNLESS_SAID = {
    "fallback_application_name": "jidomem",
    "connect_timeout": 5,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
    "client_encoding": "utf8",
}


@dataclass(frozen=True, slots=True)
class Address:
    """What to connect with, the schema, and `name`: the address as it may be shown."""

    options: Mapping[str, Any] = field(repr=False)
    schema: str
    name: str

    def clean(self, text: str) -> str:
        """Return *text* without the password."""
        secret = str(self.options.get("password") or "")
        return text.replace(secret, "***") if secret else text


def read(text: str) -> Address:
    """Return the address that *text* is; raises InvalidRequest, which shows nothing of it, where it is none.

    >>> read("postgresql://ada:secret@db1,db2/notes?schema=team").name
    'postgresql://ada@db1,db2/notes?schema=team'
    """
    url, _, query = text.partition("?")
    user, at, host = url.partition("://")[2].partition("@")
    if at and ("/" in user or "@" in host):  # libpq takes a part of such a password for the name of a host or database
        raise _unreadable()
    pairs = parse_qsl(query, keep_blank_values=True)
    named = [value for key, value in pairs if key == "schema"]
    schema = named[-1] if named else SCHEMA
    if not _SCHEMA.fullmatch(schema):
        hint = "name it with lower-case letters, digits and _, at most 41: ?schema=team"
        raise InvalidRequest(f"{schema[:60]!r} is no name of a schema", hint=hint)
    rest = urlencode([pair for pair in pairs if pair[0] != "schema"], quote_via=quote)
    try:
        said = conninfo_to_dict(f"{url}?{rest}" if rest else url)
    except ProgrammingError:  # its words may show a part of the password
        raise _unreadable() from None
    options = {**_UNLESS_SAID, **said}
    if "," in str(options.get("host", "")):
        options = {"target_session_attrs": "read-write", **options}
    return Address(options, schema, _shown(said, schema))


def _unreadable() -> InvalidRequest:
    hint = f"write it so: {_FORM}; what is no letter or digit in a password as %XX"
    return InvalidRequest("the address of the PostgreSQL database cannot be read", hint=hint)


def _shown(said: Mapping[str, Any], schema: str) -> str:
    """Return an address of what tells databases apart, and who asks."""
    hosts = str(said.get("host") or said.get("hostaddr") or "").split(",")
    ports = str(said.get("port") or "").split(",")
    ports = ports * len(hosts) if len(ports) == 1 else ports
    where = ",".join(quote(host, safe="") + (f":{port}" if port else "") for host, port in zip(hosts, ports))  # noqa: B905
    user = f"{quote(str(said['user']), safe='')}@" if said.get("user") else ""
    more = {key: said[key] for key in ("service",) if key in said} | ({"schema": schema} if schema != SCHEMA else {})
    return f"postgresql://{user}{where}/{quote(str(said.get('dbname') or ''))}" + (
        f"?{urlencode(more)}" if more else ""
    )
