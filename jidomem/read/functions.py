"""The reader's functions, each of which asks one named question."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

Rows = list[dict[str, Any]]


class Functions:
    """Questions as functions; the options of each are those of `ask`."""

    @abstractmethod
    def ask(self, name: str, *, project: str, **options: Any) -> Rows:
        """Return the rows of one named query."""

    def list_active_architectural_decisions(self, project_id: str, **options: Any) -> Rows:
        """Return decision and summary of each architectural decision; options are those of `ask`."""
        return self.ask("active-decisions", project=project_id, **options)

    def list_conventions(self, project_id: str, **options: Any) -> Rows:
        """Return conv, name and enforcement level of each convention."""
        return self.ask("conventions", project=project_id, **options)

    def list_open_tasks(self, project_id: str, *, actionable_only: bool = False, **options: Any) -> Rows:
        """Return task, summary and status of each task not completed; *actionable_only* drops abandoned ones."""
        return self.ask("open-tasks", project=project_id, actionable_only=actionable_only, **options)

    def list_open_errors(self, project_id: str, *, include_deferred: bool = True, **options: Any) -> Rows:
        """Return err, summary and severity (None where nobody stated it) of each error not resolved."""
        return self.ask("open-errors", project=project_id, include_deferred=include_deferred, **options)

    def list_facts_with_confidence(self, project_id: str, **options: Any) -> Rows:
        """Return fact, summary and confidence of each fact."""
        return self.ask("facts", project=project_id, **options)

    def list_active_sessions(self, project_id: str, **options: Any) -> Rows:
        """Return session and start of each work session that is active."""
        return self.ask("active-sessions", project=project_id, **options)

    def list_recent_lessons(self, project_id: str, **options: Any) -> Rows:
        """Return lesson, summary and time of each lesson learned, newest first."""
        return self.ask("recent-lessons", project=project_id, **options)

    def find_facts_about(self, project: str, topic: str, **options: Any) -> Rows:
        """Return subject, content, timestamp and confidence of each fact that speaks of *topic*, newest first.

        The topic is a text looked for in the content whatever the case of its letters. A confidence that was given as
        a level alone is 0.9, 0.6 or 0.3. Options are those of every named query.
        """
        return self.ask("facts-about", project=project, topic=topic, **options)

    def list_decisions(self, project: str, **options: Any) -> Rows:
        """Return subject, content and timestamp of each decision, oldest first."""
        return self.ask("decision-log", project=project, **options)

    def find_related(self, project: str, memory_id: str, **options: Any) -> Rows:
        """Return related and content of each item that shares a context with *memory_id*, itself left out.

        The id is an IRI, a unique part of the id, or the id the memory had elsewhere. Raises NotFound.
        """
        return self.ask("related", project=project, item=memory_id, **options)

    def get_conventions(self, project: str, **options: Any) -> Rows:
        """Return content and source of each convention that a person has verified.

        The source is user, agent, tool or document where that is stated, and else `session:` and its name.
        """
        rows = self.ask("verified-conventions", project=project, **options)
        return [{"content": row["content"], "source": row["source"]} for row in rows]

    def find_errors_for_module(self, project: str, module_name: str, **options: Any) -> Rows:
        """Return subject, content and timestamp of each error that affects the module, newest first."""
        return self.ask("errors-of-module", project=project, module=module_name, **options)

    def find_governing(self, project: str, file: str, **options: Any) -> Rows:
        """Return about, item, kind, summary, level, status and time of what governs *file*.

        These are rules, decisions, errors and lessons. Those about the file come first, then those about the folders
        above it, nearest first, then the conventions about no place at all; what is about a pattern such as src/*.py is
        listed by `patterns`. The file is a path as memories name it: relative, with forward slashes.
        """
        return self.ask("governing", project=project, file=file, **options)
