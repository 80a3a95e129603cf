"""`jidomem access policy`: who may assert, propose or write nothing, and the history of these rules.

`jidomem access token`: the agents, roles and projects with access to a served memory.

`jidomem access trust`: trust in the configuration of a root, which then may set more than data may.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from shlex import quote
from typing import Any

import click

from jidomem.base.clock import now, parse_moment
from jidomem.base.words import slug
from jidomem.errors import InvalidRequest, NotFound, did_you_mean, nearest_names
from jidomem.rdf import vocab
from jidomem.rdf.vocab import family
from jidomem.read.derived import authority, unsettled_changes
from jidomem.records.policy import CONFIRMS, KINDS, PRESETS, UNSET, VERDICTS, AccessPolicy, PolicyChange, role_named
from jidomem.runtime import root_config as trusting
from jidomem.runtime.logs import SERVER_LOG_TABLES, InterfaceLog
from jidomem.runtime.root_config import OF_TRUST, check_root, root_folder
from jidomem.runtime.settings import FOLDER, address_of, find, own_config
from jidomem.runtime.state import State
from jidomem.runtime.tokens import Keyring, revoke_token
from jidomem.runtime.user_config import EVERY, ROLES, ApiToken, read
from jidomem_cli.options import (
    ROWS,
    App,
    Command,
    CommandGroup,
    about_option,
    dry_run_option,
    off_option,
    pass_app,
    reason_option,
    role_option,
)
from jidomem_cli.output import show_json, show_receipt, show_result, show_rows

_WRITES = ("agent", "wait")
_POLICY_COLUMNS = ("says", "by", "reason", "change")
_kind = click.option("--kind", metavar="KIND", help="Type or family of memories, or a class of the project.")
_scope = click.option("--scope", type=click.Choice(vocab.SCOPE), metavar="SCOPE", help="Scope of conventions.")
_about = click.option("--about", metavar="PATH", help="File, folder or module; the rule holds below it, too.")

#: The most digits of a number of days.
_DIGITS = 4
_COMMANDS = "PREFIX jido: <https://jido.ai/ontology#> SELECT ?value WHERE { ?item jido:checkCommand ?value }"


@click.group(cls=CommandGroup)
def policy() -> None:
    """Set who may assert, who only proposes, and who is denied; each change is a commit of its own.

    Without a rule everybody may assert. The most specific rule applies: by agent, then path, scope, kind and role. Once
    a project has an administrator, nobody else changes its policy.

    Examples:
      jidomem access policy show
      jidomem access policy grant ana admin --agent ana
      jidomem access policy set --preset curated --agent ana
      jidomem access policy may bob architectural_decision
    """


@policy.command("show", formats=ROWS, as_of=True)
@pass_app
def show(app: App) -> None:
    """List the current rules, roles and confirmations; the history: jidomem ask policy-changes.

    Examples:
      jidomem access policy show
      jidomem access policy show --as-of 2030-01-01 --json
    """
    rows = [
        {**_policy_rows(change), "by": change.by or "the root's configuration", "reason": change.reason}
        for change in _authority(app).active_changes
    ]
    show_rows(app, rows, _POLICY_COLUMNS)
    memory = app.read()
    for counts, other in unsettled_changes(memory.reader, memory.project, as_of=app.as_of):
        app.warn(
            f"two branches changed one rule: {counts} counts, {other} does not;"
            f" settle it: {counts.command}, or {other.command}"
        )


@policy.command("set", writes=_WRITES)
@click.argument("allows", type=click.Choice((*VERDICTS, UNSET)), required=False)
@click.option("--preset", type=click.Choice(tuple(PRESETS)), help="Replace all rules by those of this preset.")
@role_option
@click.option("--for", "whom", metavar="AGENT", help="Agent that the rule is for.")
@_kind
@_about
@_scope
@reason_option()
@dry_run_option
@pass_app
def set_(
    app: App,
    allows: str | None,
    preset: str | None,
    role: str | None,
    whom: str | None,
    kind: str | None,
    about: str | None,
    scope: str | None,
    reason: str | None,
    dry_run: bool,
) -> None:
    """Set what agents may do: assert, propose or deny; unset removes the rule.

    Examples:
      jidomem access policy set propose --kind decision --about src/billing --reason "it handles money"
      jidomem access policy set assert --kind decision --about src/billing --role curator
      jidomem access policy set unset --kind decision --about src/billing
      jidomem access policy set --preset curated --dry-run
    """
    given = PolicyChange(whom, role_named(role) if role else None, kind, about, scope, allows)
    if (allows is None) == (preset is None) or (preset and given != PolicyChange()):
        hint = "jidomem access policy set propose --kind decision, or jidomem access policy set --preset curated"
        raise InvalidRequest("give a rule, or the name of a preset", hint=hint)
    if preset is None:
        _change_policy(app, [given], reason, dry_run)
        return
    changes = _authority(app).changes_to(preset)
    if not changes:
        app.info(f"the policy is {preset} already, nothing changed")
    else:
        _change_policy(app, changes, reason, dry_run)


@policy.command("grant", writes=_WRITES)
@click.argument("whom", metavar="AGENT")
@click.argument("role")
@reason_option()
@dry_run_option
@pass_app
def grant(app: App, whom: str, role: str, reason: str | None, dry_run: bool) -> None:
    """Grant AGENT a ROLE: agent, curator, admin, reader, or one of the ontology such as Architect.

    Examples:
      jidomem access policy grant bob Architect --reason "he knows the store"
      jidomem access policy grant rita curator --dry-run
    """
    _change_policy(app, [PolicyChange(agent=whom, grants=role_named(role))], reason, dry_run)


@policy.command("confirm", writes=_WRITES)
@click.argument("way", type=click.Choice(CONFIRMS))
@_kind
@click.option("--days", type=int, metavar="N", help="For unopposed: days before a proposal is confirmed.")
@off_option
@reason_option()
@dry_run_option
@pass_app
def confirm(
    app: App, way: str, kind: str | None, days: int | None, off: bool, reason: str | None, dry_run: bool
) -> None:
    """Allow `jidomem review --by-rule` to confirm proposals that a second agent restated, or that stay unopposed.

    Examples:
      jidomem access policy confirm restated --kind fact
      jidomem access policy confirm unopposed --kind lesson_learned --days 14
      jidomem access policy confirm restated --kind fact --off
    """
    change = PolicyChange(confirms=way, kind=kind, days=days, allows=UNSET if off else None)
    _change_policy(app, [change], reason, dry_run)


@policy.command("may", as_of=True)
@click.argument("name", metavar="AGENT")
@click.argument("kind", metavar="KIND")
@about_option
@_scope
@pass_app
def may(app: App, name: str, kind: str, about: tuple[str, ...], scope: str | None) -> None:
    """Show whether AGENT may assert a KIND, and by which rule; also as of a past moment.

    Examples:
      jidomem access policy may bob architectural_decision --about src/billing/api.py
    """
    rules, kinds = _authority(app), _kinds_of(app, kind)
    agent = name if ":" in name else f"{vocab.BASE}agents/{slug(name)}"
    role = rules.role_of(agent)
    verdict, rule = rules.verdict(agent, role, kinds, about, scope)
    if app.json:
        show_json({"agent": agent, "role": role, "verdict": verdict, "rule": str(rule) if rule else None})
        return
    click.echo(verdict)
    app.info(f"{name} has the role {role}; " + (f"the rule: {rule}" if rule else "no rule applies"))


def _kinds_of(app: App, name: str) -> tuple[str, ...]:
    """Return the kinds to which rules for the kind *name* apply: own classes, type and family."""
    from jidomem.schema.ontology import ITEM
    from jidomem.write.canonical import other_kind
    from jidomem.write.permissions import kinds_of_classes

    if name in KINDS:
        return name, family(name)
    schema = app.read().schema
    if len(own := schema.own_kinds(name)) != 1:
        hint = did_you_mean(name, KINDS, f"there are {', '.join(KINDS)}")
        raise InvalidRequest(f"{name!r} is not a kind of memory", hint=hint)
    kind = other_kind(own[0], ITEM, schema) or ""
    return kinds_of_classes([own[0], vocab.jido(vocab.CLASS_OF_TYPE.get(kind, ""))], schema)


def _authority(app: App) -> AccessPolicy:
    memory = app.read()
    return authority(memory.reader, memory.project, memory.settings.policy, as_of=app.as_of)


def _policy_rows(change: PolicyChange) -> dict[str, Any]:
    fields = ("agent", "role", "kind", "path", "scope", "allows", "grants", "confirms", "days")
    return {"says": str(change), **{name: getattr(change, name) for name in fields}, "change": change.node or None}


def _change_policy(app: App, changes: list[PolicyChange], reason: str | None, dry_run: bool) -> None:
    memory = app.open()
    receipt = memory.writer.change_policy(memory.project, changes, reason=reason, dry_run=dry_run)
    show_receipt(app, memory, receipt)
    for change in changes:
        app.info(str(change))
    if not memory.writer.authority(memory.project).administrators:
        app.info("no administrator, so everybody may change the policy: jidomem access policy grant AGENT admin")


_TOKEN_COLUMNS = ("id", "agent", "role", "projects", "root", "added", "expires", "last_used")


@click.group(cls=CommandGroup)
def token() -> None:
    """Issue, list and revoke tokens for a served memory: each for an agent, a role and projects.

    Only their digests are stored: in your own configuration, or with a shared memory, for all its servers. A server
    applies a change with the next request, for a shared memory seconds later.

    Examples:
      jidomem access token add ana --role curator
      jidomem access token list
    """


@token.command("add")
@click.argument("whom", metavar="AGENT")
@click.option("--role", type=click.Choice(ROLES), metavar="ROLE", default="agent", help="Role of the agent.")
@click.option("--project", "projects", multiple=True, metavar="ID", help="Project that it gives access to; repeatable.")
@click.option("--all-projects", is_flag=True, help="Give access to every present and future project.")
@click.option("--expires", metavar="DATE|DAYS", help="Last day, or number of days, that it is valid (default: no end).")
@pass_app
def add(app: App, whom: str, role: str, projects: tuple[str, ...], all_projects: bool, expires: str | None) -> None:
    """Issue a token for AGENT. It is printed once, and stored nowhere.

    ROLE is agent (default), curator, admin or reader. Without --project it is for the project of this root. The log of
    a server names the id of the token in each line.

    Examples:
      jidomem access token add ana
      jidomem access token add ci --role reader --all-projects
      jidomem access token add rita --role curator --project p --project q --expires 90
    """
    if all_projects and projects:
        raise InvalidRequest(
            "--project and --all-projects exclude each other", hint="leave out --project or --all-projects"
        )
    with app.open() as memory:
        memory.writer.acting_as(whom, role)  # raises for an agent or role that every request would be refused for
        keyring = memory.place.keyring()
        reached = (EVERY,) if all_projects else projects or (memory.project,)
        end = None if expires is None else _end(expires, memory.sources.now())
        secret, made = keyring.issue(whom, role, reached, memory.sources, expires=end)
        known = sorted({memory.project, *memory.projects()})
    for project in reached:
        if project not in (EVERY, *known):
            near = ", ".join(nearest_names(project, known, 3) or known)
            app.warn(f"no project {project!r} in {made.root} yet; there is {near}")
    if app.json:
        show_json({"token": secret, **_token_row(made)})
        return
    click.echo(secret)
    until = f", until {made.expires}" if made.expires else ""
    app.info(f"for {whom} as {role}, projects {', '.join(made.projects)}{until}; it is not shown again")
    app.info(f"revoke it: jidomem access token remove {made.id}{f' --root {quote(made.root)}' if app.root else ''}")


def _end(text: str, now: datetime) -> datetime:
    """Return the moment at which a token ends: after that many days, or with that day; raises InvalidRequest."""
    if text.isascii() and text.isdigit() and len(text) <= _DIGITS:
        end: datetime | None = now + timedelta(days=int(text))
    else:
        end = parse_moment(text)
        if end is not None and len(text) == len("2026-12-31"):
            end += timedelta(days=1)
    if end is None or end <= now:
        raise InvalidRequest(
            f"--expires {text!r} is not a number of days, or a date to come", hint="give --expires 90 or 2030-12-31"
        )
    return end


@token.command("list", formats=ROWS)
@pass_app
def list_tokens(app: App) -> None:
    """List the issued tokens, for all folders or for the root of --root, without their secrets.

    `last_used` is when a server of this machine (shared root: of this $JIDOMEM_HOME) last accepted it, to a minute
    while that runs.

    Examples:
      jidomem access token list
    """
    keyring = _keyring(app)
    tokens = read(own_config()).tokens if keyring is None else keyring.tokens
    shared = find(app.root)[0] if address_of(app.root) is not None else None
    folders = {each.root: shared or Path(each.root) for each in tokens}
    uses = {root: InterfaceLog(State(folder, SERVER_LOG_TABLES)).last_uses() for root, folder in folders.items()}
    rows = [{**_token_row(each), "last_used": uses[each.root].get(each.id, "")} for each in tokens]
    show_rows(app, rows, _TOKEN_COLUMNS)


@token.command("remove")
@click.argument("id_", metavar="ID")
@pass_app
def remove(app: App, id_: str) -> None:
    """Revoke the token ID: at the root of --root, else at the one folder that has it.

    Examples:
      jidomem access token remove 1f2e3d4c
    """
    keyring = _keyring(app)
    revoked = revoke_token(own_config(), id_) if keyring is None else keyring.revoke(id_)
    show_result(app, _token_row(revoked), message=f"revoked: {revoked.id} of {revoked.agent}, for {revoked.root}")


def _keyring(app: App) -> Keyring | None:
    """Return the tokens of the shared root, or of the folder of --root; None without one, for those of all folders."""
    if address_of(app.root) is not None:
        return app.open().place.keyring()
    return None if app.root is None else Keyring(own_config(), root_folder(app.root))


def _token_row(each: ApiToken) -> dict[str, object]:
    return {
        "id": each.id,
        "agent": each.agent,
        "role": each.role,
        "projects": list(each.projects),
        "root": each.root,
        "added": each.added,
        "expires": each.expires,
    }


@click.command(cls=Command)
@click.argument("path", type=click.Path())
@click.option(
    "--command", metavar="COMMAND", help="Allow its strict conventions to run this command, exactly as written."
)
@off_option
@pass_app
def trust_root(app: App, path: str, command: str | None, off: bool) -> None:
    """Trust the present configuration of the root at PATH: its config.toml may set where jidomem serve listens.

    Trust is stored in your own configuration, and ends when the configuration, terms, rules or queries of the root
    change. Commands must be allowed separately, with --command; a warning names the nearest one of a convention.

    Examples:
      jidomem access trust .
      jidomem access trust . --command "ruff check --stdin-filename {} -"
      jidomem access trust . --off
    """
    root = _root(path)
    if command is not None:
        trusting.let_run(own_config(), root, command, now(), off=off)
        show_result(
            app,
            {"root": str(root), "command": command, "may_run": not off},
            message=f"{command!r} may {'no longer ' if off else ''}run for {root}, before an edit",
        )
        if not off and command not in (known := _commands(root)):
            near = nearest_names(command, known)
            there = f"did you mean {near[0]!r}?" if near else f"there is {', '.join(map(repr, known)) or 'none'}"
            app.warn(f"no convention of {root} has this command: {there}")
        return
    if off:
        trusting.distrust(own_config(), root)
    else:
        trusting.trust(own_config(), root, now())
    if app.json:
        show_json({"root": str(root), "trusted": not off})
    else:
        what = f"its config.toml may set {' and '.join(OF_TRUST)}, until it changes"
        app.info(f"{root} is trusted no longer" if off else f"{root} is trusted: {what}")


def _commands(root: Path) -> list[str]:
    import jidomem

    with jidomem.open(root) as memory:
        rows = (row for project in memory.projects() for row in memory.reader.select(project, _COMMANDS))
        return sorted({row["value"] for row in rows})


def _root(path: str) -> Path:
    """Return the root at *path*; raises NotFound if there is none, InvalidRequest for an address."""
    if "://" in path:
        from jidomem.extras.servers.addresses import without_secrets

        raise InvalidRequest(
            f"{without_secrets(path)} is a shared root, whose configuration cannot be trusted: others may write to it",
            hint="set the address of each server: jidomem serve --host ADDRESS --port NUMBER",
        )
    here = Path(path).resolve()
    root = inner if (inner := root_folder(here / FOLDER)).is_dir() else root_folder(path)
    check_root(root)
    if not (root / "config.toml").exists():
        raise NotFound(f"there is no root with a config.toml at {path}", hint="give a repository, or its .jidomem")
    return root
