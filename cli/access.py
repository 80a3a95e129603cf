"""`jidomem access policy`: who may assert, propose or do nothing at all, and who has decided so.

`jidomem access token`: who may ask a served memory, as whom, in which role and for which projects.

`jidomem access trust`: let the configuration of a root say more than data may.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from jidomem.base.clock import now
from jidomem.base.words import slug
from jidomem.errors import InvalidRequest, NotFound
from jidomem.rdf import vocab
from jidomem.read.derived import authority
from jidomem.records.policy import CONFIRMS, KINDS, PRESETS, UNSET, VERDICTS, AccessPolicy, PolicyChange, role_named
from jidomem.runtime import root_config as trusting
from jidomem.runtime.root_config import OF_TRUST, check_root, root_folder
from jidomem.runtime.settings import FOLDER, address_of, own_config
from jidomem.runtime.tokens import take_back
from jidomem.runtime.user_config import EVERY, ROLES, ApiToken, read
from jidomem.write.canonical import family
from jidomem_cli.fields import reject_placeholder
from jidomem_cli.options import ROWS, App, Command, CommandGroup, pass_app
from jidomem_cli.output import show_json, show_receipt, show_rows

_WRITES = ("agent", "wait")
_POLICY_COLUMNS = ("says", "by", "reason", "change")
_reason = click.option("--reason", metavar="TEXT", help="Why; kept with the change.", callback=reject_placeholder)
_dry_run = click.option("--dry-run", is_flag=True, help="Judge it and keep nothing.")
_kind = click.option("--kind", type=click.Choice(KINDS), metavar="KIND", help="For this type, or family of types.")
_about = click.option("--about", metavar="PATH", help="For what is about this file, folder or module, or lies below.")
_scope = click.option("--scope", type=click.Choice(vocab.SCOPE), metavar="SCOPE", help="For conventions of this scope.")


@click.group(cls=CommandGroup)
def policy() -> None:
    """Say who may assert, who only proposes, and who is denied; each change is a commit of its own.

    Without a rule everybody may assert. The closest rule counts: for an agent before one for a place, a scope, a kind
    and a role. Once a project has an administrator, nobody else changes its policy.

    Examples:
      jidomem access policy show
      jidomem access policy grant ana admin --agent ana
      jidomem access policy set --preset curated --agent ana
      jidomem access policy may bob architectural_decision
    """


@policy.command("show", formats=ROWS, as_of=True)
@pass_app
def show(app: App) -> None:
    """List the current rules, roles and confirmations; all changes there were: jidomem ask policy-changes.

    Examples:
      jidomem access policy show
      jidomem access policy show --as-of 2030-01-01 --json
    """
    rows = [
        {**_policy_rows(change), "by": change.by or "the root's configuration", "reason": change.reason}
        for change in _authority(app).in_force
    ]
    show_rows(app, rows, _POLICY_COLUMNS)


@policy.command("set", writes=_WRITES)
@click.argument("allows", type=click.Choice((*VERDICTS, UNSET)), required=False)
@click.option("--preset", type=click.Choice(tuple(PRESETS)), help="Set the rules of this name instead.")
@click.option("--role", metavar="ROLE", help="For agents of this role.")
@click.option("--for", "whom", metavar="AGENT", help="For this agent.")
@_kind
@_about
@_scope
@_reason
@_dry_run
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
    """Say what agents may do: assert, propose or deny; unset takes back the rule for the same.

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
    rules = _authority(app).rules
    over = [rule for rule in rules if rule.kind or rule.path or rule.scope or rule.agent] if preset == "open" else []
    changes = [*PRESETS[preset], *(_unset_rule(rule) for rule in over)]
    if not changes:
        app.info("it is open already, nothing changed")
    else:
        _change_policy(app, changes, reason, dry_run)


@policy.command("grant", writes=_WRITES)
@click.argument("agent_", metavar="AGENT")
@click.argument("role")
@_reason
@_dry_run
@pass_app
def grant(app: App, agent_: str, role: str, reason: str | None, dry_run: bool) -> None:
    """Give AGENT a ROLE: agent, curator, admin, reader, or one of the ontology such as Architect.

    Examples:
      jidomem access policy grant bob Architect --reason "he knows the store"
      jidomem access policy grant rita curator --dry-run
    """
    _change_policy(app, [PolicyChange(agent=agent_, grants=role_named(role))], reason, dry_run)


@policy.command("confirm", writes=_WRITES)
@click.argument("way", type=click.Choice(CONFIRMS))
@_kind
@click.option("--days", type=int, metavar="N", help="For unopposed: how long a proposal stands before.")
@click.option("--off", is_flag=True, help="Let them wait for a curator again.")
@_reason
@_dry_run
@pass_app
def confirm(
    app: App, way: str, kind: str | None, days: int | None, off: bool, reason: str | None, dry_run: bool
) -> None:
    """Let `jidomem review --by-rule` confirm proposals: restated by a second agent, or unopposed for some days.

    Examples:
      jidomem access policy confirm restated --kind fact
      jidomem access policy confirm unopposed --kind lesson_learned --days 14
      jidomem access policy confirm restated --kind fact --off
    """
    change = PolicyChange(confirms=way, kind=kind, days=days, allows=UNSET if off else None)
    _change_policy(app, [change], reason, dry_run)


@policy.command("may", as_of=True)
@click.argument("who", metavar="AGENT")
@click.argument("what", metavar="KIND", type=click.Choice(KINDS))
@click.option("--about", multiple=True, metavar="PATH", help="What it would be about; repeat it for more.")
@_scope
@pass_app
def may(app: App, who: str, what: str, about: tuple[str, ...], scope: str | None) -> None:
    """Say what would become of a KIND that AGENT submits, and by which rule; also as of a past moment.

    Examples:
      jidomem access policy may bob architectural_decision --about src/billing/api.py
    """
    rules = _authority(app)
    agent = who if ":" in who else f"{vocab.BASE}agents/{slug(who)}"
    role = rules.role_of(agent)
    verdict, rule = rules.verdict(agent, role, (what, family(what)), about, scope)
    if app.json:
        show_json({"agent": agent, "role": role, "verdict": verdict, "rule": str(rule) if rule else None})
        return
    click.echo(verdict)
    app.info(f"{who} has the role {role}; " + (f"the rule: {rule}" if rule else "no rule speaks of it"))


def _authority(app: App) -> AccessPolicy:
    memory = app.read()
    return authority(memory.reader, memory.project, memory.settings.policy, as_of=app.as_of)


def _policy_rows(change: PolicyChange) -> dict[str, Any]:
    fields = ("agent", "role", "kind", "path", "scope", "allows", "grants", "confirms", "days")
    return {"says": str(change), **{name: getattr(change, name) for name in fields}, "change": change.node or None}


def _unset_rule(rule: PolicyChange) -> PolicyChange:
    return PolicyChange(rule.agent, rule.role, rule.kind, rule.path, rule.scope, allows=UNSET)


def _change_policy(app: App, changes: list[PolicyChange], reason: str | None, dry_run: bool) -> None:
    memory = app.open()
    receipt = memory.writer.change_policy(memory.project, changes, reason=reason, dry_run=dry_run)
    show_receipt(app, memory, receipt)
    for change in changes:
        app.info(str(change))
    if not memory.writer.authority(memory.project).administrators:
        app.info("nobody is an administrator, so everybody may change this: jidomem access policy grant AGENT admin")


_TOKEN_COLUMNS = ("id", "agent", "role", "projects", "root", "added")


@click.group(cls=CommandGroup)
def token() -> None:
    """Say who may ask a served memory: with a token, as an agent in a role, for some of its projects.

    They are kept in your own configuration, by a digest alone, or with the memory where that is shared: then every
    server believes them. A server takes in a change with the next request, of a shared memory seconds later.

    Examples:
      jidomem access token add ana --role curator
      jidomem access token list
    """


@token.command("add")
@click.argument("agent")
@click.option("--role", type=click.Choice(ROLES), default="agent", show_default=True, help="What it may do.")
@click.option("--project", "projects", multiple=True, metavar="ID", help="What it reaches; repeat it for more.")
@click.option("--all-projects", is_flag=True, help="It reaches every project there is or will be.")
@pass_app
def add(app: App, agent: str, role: str, projects: tuple[str, ...], all_projects: bool) -> None:
    """Give out a token for AGENT. It is printed this once, and kept nowhere.

    Without --project it reaches the project of this root.

    Examples:
      jidomem access token add ana
      jidomem access token add ci --role reader --all-projects
      jidomem access token add rita --role curator --project p --project q
    """
    if all_projects and projects:
        raise InvalidRequest("it reaches all projects or the ones named", hint="leave out --project or --all-projects")
    with app.open() as memory:
        memory.writer.acting_as(agent, role)  # raises for what would be refused with each request
        keyring = memory.place.keyring()
        reached = (EVERY,) if all_projects else projects or (memory.project,)
        secret, made = keyring.give_out(agent, role, reached, memory.sources)
    if app.json:
        show_json({"token": secret, **_token_row(made)})
        return
    click.echo(secret)
    app.info(f"{agent} has it as {role}, for {', '.join(made.projects)}; it is not shown again")
    app.info(f"take it back with: jidomem access token remove {made.id}")


@token.command("list", formats=ROWS)
@pass_app
def list_tokens(app: App) -> None:
    """List the tokens given out, for every folder or for the shared root named, without what they are.

    Examples:
      jidomem access token list
    """
    shared = address_of(app.root) is not None
    tokens = app.open().place.keyring().tokens if shared else read(own_config()).tokens
    show_rows(app, [_token_row(each) for each in tokens], _TOKEN_COLUMNS)


@token.command("remove")
@click.argument("id_", metavar="ID")
@pass_app
def remove(app: App, id_: str) -> None:
    """Take back the token ID: from now on it is none.

    Examples:
      jidomem access token remove 1f2e3d4c
    """
    shared = address_of(app.root) is not None
    revoked = app.open().place.keyring().take_back(id_) if shared else take_back(own_config(), id_)
    if app.json:
        show_json(_token_row(revoked))
    else:
        app.info(f"taken back: {revoked.id}, of {revoked.agent}, for {revoked.root}")


def _token_row(each: ApiToken) -> dict[str, object]:
    return {
        "id": each.id,
        "agent": each.agent,
        "role": each.role,
        "projects": list(each.projects),
        "root": each.root,
        "added": each.added,
    }


@click.command(cls=Command)
@click.argument("path", type=click.Path())
@click.option("--command", metavar="COMMAND", help="Only let its strict conventions have this command run, as written.")
@click.option("--off", is_flag=True, help="Trust it no longer.")
@pass_app
def trust_root(app: App, path: str, command: str | None, off: bool) -> None:
    """Trust the root at PATH, or in it, as it is now: its config.toml may say where jidomem serve listens.

    A root is found on disk, and may be somebody else's. Trust is kept in your own configuration, and ends when the
    root's configuration, terms, rules or questions change. It lets no command run: each is let by itself.

    Examples:
      jidomem access trust .
      jidomem access trust . --command "ruff check --stdin-filename {} -"
      jidomem access trust . --off
    """
    root = _root(path)
    if command is not None:
        trusting.let_run(own_config(), root, command, now(), off=off)
        if app.json:
            show_json({"root": str(root), "command": command, "may_run": not off})
        else:
            app.info(f"{command!r} may {'run no longer' if off else 'run'} for {root}, before an edit")
        return
    if off:
        trusting.distrust(own_config(), root)
    else:
        trusting.trust(own_config(), root, now())
    if app.json:
        show_json({"root": str(root), "trusted": not off})
    else:
        what = f"its config.toml may set {' and '.join(OF_TRUST)}, until something of it changes"
        app.info(f"{root} is trusted no longer" if off else f"{root} is trusted: {what}")


def _root(path: str) -> Path:
    """Return the root that is meant; raises NotFound where there is none, InvalidRequest for an address."""
    if "://" in path:
        from jidomem.extras.servers.addresses import shown

        raise InvalidRequest(
            f"{shown(path)} is data for whoever may write to it: nothing of a shared root is trusted to say more",
            hint="tell each server where it listens: jidomem serve --host ADDRESS --port NUMBER",
        )
    here = Path(path).resolve()
    root = inner if (inner := root_folder(here / FOLDER)).is_dir() else root_folder(path)
    check_root(root)
    if not (root / "config.toml").exists():
        raise NotFound(f"there is no root with a config.toml at {path}", hint="name a repository, or its .jidomem")
    return root
