"""`papaver api`: lists the operations of a Company's OpenAPI APIs, or calls one (section 7)."""

from __future__ import annotations

import asyncio
import json
import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from papaver.cli.failures import FAILED, SIGN_IN_NEEDED, CliError
from papaver.cli.needs import told_to_sign_in
from papaver.cli.options import command
from papaver.cli.run import Run
from papaver.cli.table import show_table
from papaver.cli.text import clean
from papaver.personal_agent.described import DescribedApi
from papaver.personal_agent.flows.request import Exchange, signed
from papaver.personal_agent.live import NotOffered
from papaver.protocol.openapi import Operation
from papaver.protocol.openapi_requests import needed, operation_request
from papaver.values.strict_json import JsonError, loads
from papaver.web.messages import Response

if TYPE_CHECKING:
    from papaver.adapters.httpx2.personal_agent import HttpSession

__all__ = ["api"]


@command("api", example="papaver api shop.example listOrders --param state=open")
@click.argument("domain")
@click.argument("operation_id", required=False)
@click.option("--param", "parameters", multiple=True, metavar="K=V", help="A parameter; repeated, it is a list.")
@click.option("--body", metavar="JSON", help="The request's body.")
@click.option("--user", default="me", show_default=True, help="Your name for the User; no Company sees it.")
@click.option("--agent-id", metavar="NAME", help="Which of the User's agents; no Company sees the name.")
@click.option("--anonymous", is_flag=True, help="A User ID for this Session alone; never signed in.")
def api(
    run: Run,
    domain: str,
    operation_id: str | None,
    parameters: tuple[str, ...],
    body: str | None,
    user: str,
    agent_id: str | None,
    anonymous: bool,
) -> None:
    """Without OPERATION_ID, list what the APIs of the Company of DOMAIN offer; with one, call it.

    An operation without an id is named by its method and path: "GET /orders".
    """
    if operation_id is None and (parameters or body is not None):
        raise click.UsageError("--param and --body belong to an OPERATION_ID")
    given, content = _given(parameters), _content(body)
    status = asyncio.run(_api(run, domain, operation_id, given, content, user, agent_id, anonymous))
    if status:
        click.get_current_context().exit(status)


async def _api(
    run: Run,
    domain: str,
    operation_id: str | None,
    given: dict[str, object],
    body: object,
    user: str,
    agent_id: str | None,
    anonymous: bool,
) -> int:
    from papaver.cli.agent import agent_of

    async with agent_of(run) as agent:
        company = await agent.discover(domain)
        session = company.session(user, agent_id=agent_id, anonymous=anonymous)
        apis = await session.apis()
        if not apis:
            raise NotOffered("the Company lists no OpenAPI API", rule="api.offered")
        for one in apis:
            if one.failure is not None:
                run.note(f"{one.api.url} cannot be used: {one.failure}")
        if operation_id is None:
            _list(run, apis)
            return FAILED if all(one.failure is not None for one in apis) else 0
        operation = _named(apis, operation_id, company.domain)
        exchange = await _called(session, operation, given, body)
    _show(run, exchange.response)
    if exchange.needs is not None:
        run.fail(told_to_sign_in(exchange.needs, company.domain, user))
        return SIGN_IN_NEEDED
    return _judged(run, exchange.response)


async def _called(session: HttpSession, operation: Operation, given: dict[str, object], body: object) -> Exchange:
    """One call. Signed in, its token has the scopes that the operation asks for, where the account has them."""
    request = operation_request(operation, given, body)
    scopes = needed(operation, await session.scopes()).scopes
    return await session.run(signed(session.live, lambda _: request, scopes))


def _named(apis: Sequence[DescribedApi], name: str, domain: str) -> Operation:
    for one in apis:
        found = None if one.description is None else one.description.named(name)
        if found is not None:
            return found
    every = (each for one in apis if one.description is not None for each in one.description.operations)
    for operation in every:
        if f"{operation.method} {operation.path}" == name:
            return operation
    raise CliError(
        f"no API of the Company has an operation {name!r}",
        code="usage",
        rule="api.operation",
        next=f"papaver api {shlex.quote(domain)} lists them",
    )


def _list(run: Run, apis: Sequence[DescribedApi]) -> None:
    rows: list[tuple[str, str, str, str]] = []
    for one in apis:
        if one.description is None:
            continue
        for where, what in one.description.findings:
            run.note(f"{one.api.url}#{where} is left out: {what}")
        for operation in one.description.operations:
            scopes = needed(operation).scopes
            run.line(
                operation_id=operation.operation_id,
                method=operation.method,
                path=operation.path,
                api=one.api.url,
                summary=operation.summary,
                scope=" ".join(scopes),
                parameters=[
                    {"name": each.name, "in": each.place, "required": each.required} for each in operation.parameters
                ],
                body=list(operation.body_types),
            )
            name = operation.operation_id or f"{operation.method} {operation.path}"
            rows.append((name, f"{operation.method} {operation.path}", " ".join(scopes), operation.summary[:60]))
    show_table(run, ("operation", "request", "scopes", "what it does"), rows)


def _show(run: Run, response: Response) -> None:
    body = _body(response)
    run.line(status=response.status, body=body)
    if not run.json:
        run.note(f"({response.status})")
        text = body if isinstance(body, str) else json.dumps(body, ensure_ascii=False, indent=2)
        if response.body:
            click.echo(clean(text))


def _body(response: Response) -> object:
    """The body as JSON where it is that, else as text; None for none."""
    if not response.body:
        return None
    try:
        return loads(response.body, max_bytes=len(response.body))
    except JsonError:
        return response.body.decode(errors="replace")


def _judged(run: Run, response: Response) -> int:
    """0 for what was done; else it is told what the Company answered."""
    if response.status < 400:
        return 0
    if response.status in (401, 403):
        advice = "papaver status shows what the User approved; the Company's answer says the rest"
    else:
        advice = "the answer above is the Company's; --trace shows the exchange"
    run.fail(CliError(f"the Company answered {response.status}", code="refused", rule="api.answer", next=advice))
    return FAILED


def _given(parameters: Sequence[str]) -> dict[str, object]:
    """K=V; one that is repeated is a list."""
    values: dict[str, list[str]] = {}
    for parameter in parameters:
        name, equals, value = parameter.partition("=")
        if not (name and equals):
            raise click.UsageError(f"--param {parameter!r} is not K=V")
        values.setdefault(name, []).append(value)
    return {name: found[0] if len(found) == 1 else found for name, found in values.items()}


def _content(body: str | None) -> object:
    if body is None:
        return None
    try:
        return loads(body)
    except JsonError as error:
        raise click.UsageError(f"--body is no JSON: {error.description}") from None
