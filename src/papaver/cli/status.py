"""`papaver status`: what this machine's Personal Agent knows and holds, without a secret."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import click

from papaver.cli.options import command
from papaver.cli.run import Run
from papaver.cli.table import show_table

__all__ = ["status"]


@command("status", network=False, example="papaver status shop.example")
@click.argument("domain", required=False)
def status(run: Run, domain: str | None) -> None:
    """Show Companies, accounts with their scopes, conversations, messages on their way, and delegated keys.

    Of DOMAIN, or all. Nobody is asked: accounts and conversations are shown as the Company told them last.
    """
    asyncio.run(_status(run, domain))


async def _status(run: Run, domain: str | None) -> None:
    from papaver.cli.agent import agent_of
    from papaver.stores.sqlite.vault import SqliteVault

    domain = None if domain is None else domain.lower()
    vault = SqliteVault(run.home.vault)
    async with agent_of(run) as agent:
        companies = [one for one in await agent.companies() if domain in (None, one.domain)]
        conversations = [one for one in await agent.conversations() if domain in (None, one.domain)]
        accounts = [one for one in await agent.accounts() if domain in (None, one.domain)]
        pending = [one for one in await agent.pending() if domain in (None, one.domain)]
        identifiers = {one.identifier for one in companies} | {one.company for one in conversations}
        keys = [one for one in await agent.delegated_keys() if domain is None or one.company in identifiers]
        await vault.open()
        guarded_by = vault.guarded_by
        await vault.close()
    run.line(client_id=agent.identity.client_id, home=str(run.home.folder), vault_key=guarded_by)
    run.say("{client}", client=agent.identity.client_id)
    run.say("  home {home}; the vault's key is in {key}", home=run.home.folder, key=guarded_by)
    for company in companies:
        run.line(
            domain=company.domain,
            name=company.name,
            identifier=company.identifier,
            issuer=company.issuer,
            version=company.version,
            discovered_at=_time(company.discovered_at),
        )
        run.say()
        run.say("{name} ({domain})", name=company.name, domain=company.domain)
        run.say("  {id}, version {version}", id=company.identifier, version=company.version)
    for one in accounts:
        run.line(
            account=one.account,
            domain=one.domain,
            user=one.user,
            state=one.state,
            scope=" ".join(one.scopes),
            signed_in_at=_time(one.signed_in_at),
            expires_at=None if one.expires_at is None else _time(one.expires_at),
            unrevoked=one.unrevoked,
        )
    for one in conversations:
        run.line(
            conversation_id=one.conversation_id,
            domain=one.domain,
            user=one.user,
            status=one.status,
            responder=one.responder,
            cursor=one.cursor,
            started_at=_time(one.started_at),
        )
    for one in pending:
        run.line(pending=one.message_id, domain=one.domain, user=one.user, written_at=_time(one.written_at))
    for one in keys:
        run.line(delegated_key=one.kid, company=one.company, user_id=one.user_id, expires_at=_time(one.expires_at))
    if domain is not None and not (companies or accounts or conversations or pending or keys):
        run.say("Nothing is known of {domain} here yet; papaver discover {domain} looks for it.", domain=domain)
    run.say()
    show_table(
        run,
        ("account", "at", "user", "state", "scopes", "access token until"),
        [
            (
                one.account,
                one.domain,
                one.user,
                one.state.replace("_", " "),
                " ".join(one.scopes),
                "-" if one.expires_at is None else _time(one.expires_at),
            )
            for one in accounts
        ],
    )
    left = sum(one.unrevoked for one in accounts)
    if left:
        run.note(f"the Company could not be told of {left} refresh tokens to revoke; papaver sign-out tells it again")
    show_table(
        run,
        ("conversation", "with", "user", "status when last seen"),
        [(one.conversation_id, one.domain, one.user, f"{one.status}, {one.responder}") for one in conversations],
    )
    show_table(
        run,
        ("message not yet accepted", "for", "user", "text"),
        [(one.message_id, one.domain, one.user, (one.text or "")[:60]) for one in pending],
    )
    show_table(
        run,
        ("delegated key", "for", "until"),
        [(one.kid, one.company, _time(one.expires_at)) for one in keys],
    )


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
