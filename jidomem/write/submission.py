"""A submission is one write on its way through the pipeline, with its options."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol

from jidomem.errors import JidomemError
from jidomem.rdf.terms import Term, Triple
from jidomem.records.intent import MemoryUpdateIntent, Receipt, Version
from jidomem.write.conflict import UniqueKey
from jidomem.write.snapshot import WriteSnapshot

if TYPE_CHECKING:
    from jidomem.write.pipeline import Pipeline

Proposal = MemoryUpdateIntent | Mapping[str, Any]
#: An intent, or the reason why it could not be read.
Given = Proposal | JidomemError
#: The answer to a submission: the receipt of a durable commit, or the refusal.
Outcome = Receipt | JidomemError


@dataclass(frozen=True, slots=True)
class SubmitOptions:
    """The options of a submitted intent.

    `blobs` gives the blob id of each file that the intent is about (None: the present ones), `absent` the files that
    do not exist, each with the nearest existing path. With `propose` the intent waits for a curator. `as_it_was`
    restates a memory that was active, beside the memories it disagreed with then. `under` is a key that is to be
    unique among active memories. The memories in `ending` are replaced by other members of the same commit and
    conflict with nothing. With `relocates` the intent repeats a memory whose source was moved, with its
    confirmations. `imported` permits undeclared values, which earlier releases accepted.
    """

    blobs: Mapping[str, str] | None = None
    propose: bool = False
    as_it_was: bool = False
    under: UniqueKey | None = None
    ending: frozenset[str] = frozenset()
    relocates: bool = False
    absent: Mapping[str, str | None] = field(default_factory=dict)
    imported: bool = False


DEFAULT_OPTIONS = SubmitOptions()


@dataclass(frozen=True, slots=True)
class Submission:
    """An intent for a project, with its options; an error in the place of the intent is its refusal."""

    project: str
    intent: Given
    options: SubmitOptions = DEFAULT_OPTIONS


class OtherSubmission(Protocol):
    """A submission that is no intent: a description, an entry, a session, a change of policy and so on."""

    def decide(self, pipeline: Pipeline, view: WriteSnapshot, now: datetime) -> Decision:
        """Return the triples to append and the receipt, or raise the refusal."""


AnySubmission = Submission | OtherSubmission


@dataclass(frozen=True, slots=True)
class Decision:
    """The triples to append for an accepted submission (none for a known one), and the receipt.

    `nodes` are the subjects that are new to the project: the commit records its time on them. A receipt without a
    commit gets the commit of its block.
    """

    receipt: Receipt
    triples: tuple[Triple, ...] = ()
    nodes: tuple[Term, ...] = ()


UNCHANGED = Decision(Receipt("", None, Version(), "deduplicated"))
REFUSED = Decision(Receipt("", None, Version(), "refused"))
