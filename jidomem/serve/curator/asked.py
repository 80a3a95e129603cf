"""What a page is asked: of which project, as of which moment, with which arguments; and how pages link to another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

from jidomem.moments import stamp
from jidomem.query import moment_of
from jidomem.runtime.root import Jidomem
from jidomem.serve.curator.names import Named, named
from jidomem.serve.site import Site

#: The argument every page takes, and hands on to every page it links to.
AS_OF = "as_of"


@dataclass(frozen=True, slots=True)
class Asked:
    """One request for a page; `as_of` is the moment all of it is shown as of, None for now."""

    site: Site
    project: str
    given: Mapping[str, str]
    as_of: str | None = None

    @classmethod
    def of(cls, site: Site, project: str, given: Mapping[str, str]) -> Asked:
        """Return what is asked with the arguments *given*; raises InvalidRequest for a moment that is none."""
        return cls(site, project, given, moment_of(given.get(AS_OF) or None, AS_OF))

    @property
    def memory(self) -> Jidomem:
        """Return the open memory."""
        return self.site.memory

    @property
    def moment(self) -> dict[str, str]:
        """Return the moment as the reader takes it."""
        return {} if self.as_of is None else {AS_OF: self.as_of}

    @property
    def valid_at(self) -> str:
        """Return the moment at which memories are to hold in the world: that of the page, or now."""
        return self.as_of or stamp(self.memory.sources.now())

    def term(self, name: str) -> Named:
        """Return what a term of the ontology is called, by its IRI or its local name."""
        return named(self.memory.schema, name)

    def link(self, *parts: str, **arguments: Any) -> str:
        """Return the address of another page of this project, at the same moment; what is None or empty is left out."""
        path = "/".join(quote(part, safe="") for part in ("ui", self.project, *parts))
        told = {AS_OF: self.as_of, **arguments}
        kept = [(name, value) for name, value in told.items() if value not in (None, "", (), [])]
        return f"/{path}?{urlencode(kept, doseq=True)}" if kept else f"/{path}"
