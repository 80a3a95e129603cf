"""What a writer left to be taken in before anything is read, and how far each graph reaches once it is in."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock

from jidomem.index.document import Mark
from jidomem.journal.commit import Commit


class Waiting:
    """The commits that wait, by graph and in order: `commits`, and the `marks` of these graphs once they are in.

    One thread may add while another takes in what came before.
    """

    def __init__(self) -> None:
        self.commits: dict[str, list[Commit]] = {}
        self.marks: dict[str, Mark] = {}
        self._lock = Lock()

    def add(self, graph: str, commit: Commit, mark: Callable[[str], Mark]) -> int:
        """Let *commit* wait, which follows from the *mark* of its graph; return how many bytes wait."""
        with self._lock:
            ahead = mark(graph).after([commit])
            self.commits[graph] = [*self.commits.get(graph, ()), commit]  # first: what is marked is there, or waits
            self.marks[graph] = ahead
            return sum(len(each.data) for commits in self.commits.values() for each in commits)

    def take(self, load: Callable[[str, list[Commit]], None]) -> None:
        """Have *load* take in what waits; where it fails, what follows from what is not in waits no more either."""
        for graph, commits in [*self.commits.items()]:
            is_in = False
            try:
                load(graph, commits)
                is_in = True
            finally:  # not before: who reads meanwhile waits
                with self._lock:
                    came = self.commits[graph][len(commits) :]
                    if is_in and came:
                        self.commits[graph] = came
                    else:
                        self.marks.pop(graph, None)
                        self.commits.pop(graph, None)

    def forget(self) -> None:
        """Let nothing wait any more."""
        self.commits, self.marks = {}, {}
