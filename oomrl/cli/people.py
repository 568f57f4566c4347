"""`oomrl people`: accounts of the page, by command."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from oomrl.adapters.accounts import Accounts
from oomrl.adapters.audit import Audit
from oomrl.cli.options import (
    as_option,
    json_option,
    now,
    open_state,
    person,
    say,
    settings_option,
    state_option,
    state_settings,
)
from oomrl.domain.people import Person, Right, Role, scopes_of

_role = click.Choice([role.value for role in Role])


@contextmanager
def accounts(state: Path, settings_file: Path | None) -> Iterator[tuple[Accounts, Person, str]]:
    """Give the accounts of a state directory, who acts, and the beginning of links."""
    settings = state_settings(state, settings_file)
    with open_state(state) as store:
        opened = Accounts(store, settings.web, now, Audit(state).act)
        who = opened.commander(person(), os.environ.get("OOMRL_TOKEN", ""), inviting=True)
        yield opened, who, settings.web.url()


@click.group()
def people() -> None:
    """Invite, change and close accounts of the page; make tokens."""


@people.command(name="list")
@state_option
@settings_option
@json_option
def list_(state: Path, settings_file: Path | None, as_json: bool) -> None:
    """List accounts."""
    with accounts(state, settings_file) as (opened, who, _):
        rows = [
            {
                "name": u.name,
                "role": u.role.value,
                "active": u.active,
                "password": bool(u.password),
                "let_in_by": u.let_in_by or "the host",
                "confirmed_by": u.confirmed_by,
            }
            for u in opened.users(who)
        ]
    text = "\n".join(
        f"{r['name']:24} {r['role']:10} {'active' if r['active'] else 'closed'}  let in by {r['let_in_by']}"
        f"{', confirmed by ' + str(r['confirmed_by']) if r['confirmed_by'] else ''}"
        for r in rows
    )
    say(rows, as_json, text or "No accounts.")


@people.command()
@click.argument("name")
@click.option("--role", type=_role, required=True, help="What it may do.")
@state_option
@settings_option
def invite(name: str, role: str, state: Path, settings_file: Path | None) -> None:
    """Make an account and print the link that sets its password, once.

    Before there is an administrator the host invites without a token, and each such account is a person of its own.
    """
    with accounts(state, settings_file) as (opened, who, begins):
        secret = opened.invite(who, name, Role(role))
    click.echo(f"{begins}/welcome/{secret}")


@people.command(name="role")
@click.argument("name")
@click.argument("role", type=_role)
@state_option
@settings_option
def role_(name: str, role: str, state: Path, settings_file: Path | None) -> None:
    """Give an account another role."""
    with accounts(state, settings_file) as (opened, who, _):
        opened.set_role(who, name, Role(role))
    click.echo(f"{name} is a {role}.")


@people.command()
@click.argument("name")
@state_option
@settings_option
def again(name: str, state: Path, settings_file: Path | None) -> None:
    """Print a new link for an account whose password is lost."""
    with accounts(state, settings_file) as (opened, who, begins):
        secret = opened.invite_again(who, name)
    click.echo(f"{begins}/welcome/{secret}")


@people.command()
@click.argument("name")
@as_option("who", "runs the host")
@state_option
@settings_option
def recover(name: str, who: str, state: Path, settings_file: Path | None) -> None:
    """Print a new link for the only administrator, whose password is lost, as whoever can write the state directory.

    The chain says so, and until somebody confirms the account it counts as one person with others of the same host.
    """
    settings = state_settings(state, settings_file)
    with open_state(state) as store:
        secret = Accounts(store, settings.web, now, Audit(state).act).recover(who, name)
    click.echo(f"{settings.web.url()}/welcome/{secret}")


@people.command()
@click.argument("name")
@as_option("who", "confirms")
@state_option
@settings_option
def confirm(name: str, who: str, state: Path, settings_file: Path | None) -> None:
    """Say that a person of their own is behind an account, so that two approvals are two people's.

    With OOMRL_TOKEN an administrator says so, who has nothing to do with who let the account in; without it the host:
    whoever can write the state directory.
    """
    with open_state(state) as store:
        opened = Accounts(store, state_settings(state, settings_file).web, now, Audit(state).act)
        token = os.environ.get("OOMRL_TOKEN", "")
        acting = opened.commander(who, token) if token else Person(who, frozenset(Right), "host")
        opened.confirm(acting, name)
    click.echo(f"{name} counts as a person of their own.")


@people.command()
@click.argument("name")
@state_option
@settings_option
def close(name: str, state: Path, settings_file: Path | None) -> None:
    """Close an account; its sessions and tokens end."""
    with accounts(state, settings_file) as (opened, who, _):
        opened.set_active(who, name, active=False)
    click.echo(f"{name} is closed.")


@people.command()
@click.argument("name")
@state_option
@settings_option
def unlock(name: str, state: Path, settings_file: Path | None) -> None:
    """End the lock of an account after too many wrong passwords."""
    with accounts(state, settings_file) as (opened, who, _):
        opened.unlock(who, name)
    click.echo(f"{name} is unlocked.")


@people.command()
@click.option("--label", required=True, help="What the token is for.")
@click.option("--scope", "scopes", multiple=True, required=True, help="see, comment, review, operate, administer.")
@state_option
@settings_option
def token(label: str, scopes: tuple[str, ...], state: Path, settings_file: Path | None) -> None:
    """Print a new token of one's own, once."""
    with accounts(state, settings_file) as (opened, who, _):
        click.echo(opened.make_token(who, label, scopes_of(scopes)))
