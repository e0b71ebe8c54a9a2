"""The five requests of a conversation as flows (8.2-8.5, 8.9, 8.12): what arrives late or twice changes nothing."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec

from papaver.oauth.scopes import covers
from papaver.personal_agent.accounts import is_in, may_sign_in, need_of
from papaver.personal_agent.content import check_extensions_shared
from papaver.personal_agent.flows.access import access_for, account_of
from papaver.personal_agent.flows.effects import Flow, StreamedResponse, keep, wait
from papaver.personal_agent.flows.moved import found_elsewhere
from papaver.personal_agent.flows.recoveries import retry_after
from papaver.personal_agent.flows.request import Build, Exchange, signed
from papaver.personal_agent.live import LiveSession, OpenedSession
from papaver.personal_agent.outbox import START, Target, clear, is_waiting, message_of, pending, put, says, target_of
from papaver.personal_agent.records import CONVERSATION, ConversationRow, OutboxRow, read_row, row_key, write_row
from papaver.ports.system import FetchFailed, FetchFault
from papaver.protocol.company import Access
from papaver.protocol.conversation.content import is_id
from papaver.protocol.conversation.model import Message, MessageAdded, Responder, Role, Status
from papaver.protocol.dialect import Accepted, Page, Wanted
from papaver.protocol.errors import (
    ConversationClosed,
    ConversationNotFound,
    CursorExpired,
    DirectConversationOpen,
    ExtensionRequired,
    InsufficientScope,
    InvalidRequest,
    MessageIdConflict,
    Misbehaved,
    RateLimited,
    Refused,
    SignInNeeded,
    TemporarilyUnavailable,
)
from papaver.protocol.terms import ConversationId
from papaver.values.errors import PapaverError
from papaver.values.rules import rule
from papaver.web.messages import Request, Response
from papaver.web.urls import host_of

__all__ = [
    "Delivered",
    "authorize",
    "check_same_conversation",
    "close",
    "deliver",
    "deliver_pending",
    "hand_off",
    "listen",
    "read",
    "refusal",
    "write",
]

logger = logging.getLogger("papaver.personal_agent")

PASSING: Final = frozenset({502, 503, 504})
"""What a gateway answers while the server behind it is away."""
UNDECIDED: Final = frozenset({408, 425})
"""Below 500, and yet the message may have been, or may still be, accepted."""
OF_THE_MESSAGE: Final = frozenset(
    kind.code
    for kind in (
        ConversationClosed,
        ConversationNotFound,
        DirectConversationOpen,
        ExtensionRequired,
        InvalidRequest,
        MessageIdConflict,
    )
)
"""Refusals of the message itself: one that was accepted before is not refused so."""
_CODE: Final = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]{1,100}")
"""What an error code may consist of (RFC 6749 5.2), but for the space."""
NOTHING: Final = Wanted()
PAGES_LOOKED_AT: Final = 20
"""For a message that was accepted with an invitation; a Direct Conversation that has just opened has one page."""


class Delivered(NamedTuple):
    """An accepted message; None for an invitation's acceptance without one. `page` is what the request waited for."""

    row: ConversationRow
    page: Page | None
    message_id: str
    message: Message | None


def write(live: LiveSession, message: Message, target: Target = START) -> Flow[OutboxRow]:
    """Put a message into the outbox, durably. Nothing is sent. Raises InvalidRequest, NotOffered, SignInNeeded."""
    opened = yield from live.opened()
    _ = opened.endpoint
    if target.conversation is None:
        yield from _arranged(live, opened)
    check_extensions_shared(message, opened.extensions)
    return (yield from put(live, opened, message, target))


def deliver(live: LiveSession, row: OutboxRow, wanted: Wanted = NOTHING, *, later: bool = False) -> Flow[Delivered]:
    """Send a message of the outbox until it is accepted: the same ID and content each time (8.3).

    It leaves the outbox when it is accepted, and when it surely was not: then Refused, RateLimited or SignInNeeded is
    raised. It stays there when that is not known: after FetchFailed, and after a try without an answer for every
    refusal that says nothing of the message itself. With `later` an earlier process may have made that try.
    """
    message, target = message_of(row) if says(row) else None, target_of(row)

    def build(opened: OpenedSession) -> Request:
        codec = opened.dialect.conversations
        if target.conversation is not None and message is not None:
            return codec.write_say(opened.endpoint, target.conversation, message, wanted)
        return codec.write_start(opened.endpoint, message, wanted, target.parent, target.user_requested)

    try:
        exchange, unsure = yield from _patiently(live, build)
    except RateLimited:  # it was not sent: the Company asked to wait longer than is waited here (5.6)
        if not later:
            yield from clear(row)
        raise
    opened, response, _ = exchange
    if response.status >= 300:
        error = refusal(live, exchange)
        if _settles(error, response, unsure=unsure or later):
            yield from clear(row)
        raise error
    answer = opened.dialect.conversations.read_accepted(response)
    if target.conversation is not None:
        check_same_conversation(answer.conversation_id, target.conversation)
    kept = yield from _keep_conversation(live, row, exchange, answer)
    if target.user_requested is not None and message is not None:
        yield from _surely_said(live, answer.conversation_id, message)
    yield from clear(row)
    return Delivered(kept, answer if isinstance(answer, Page) else None, row.message_id, message)


def _surely_said(live: LiveSession, direct: ConversationId, message: Message) -> Flow[None]:
    """An acceptance that the Company knew already adds no message (readings 23): what the User said is said then.

    It is looked for from the beginning, and no event counts as handled for that. Raises what a message is refused with.
    """
    cursor = None
    for _ in range(PAGES_LOOKED_AT):
        page = yield from read(live, direct, Wanted(cursor))
        for event in page.events:
            if isinstance(event, MessageAdded) and (event.message.id, event.message.role) == (message.id, Role.USER):
                return
        if not page.has_more:
            break
        cursor = page.cursor
    exchange, _ = yield from _patiently(
        live, lambda opened: opened.dialect.conversations.write_say(opened.endpoint, direct, message, NOTHING)
    )
    if exchange.response.status >= 300:
        raise refusal(live, exchange)


def deliver_pending(live: LiveSession, busy: frozenset[str] = frozenset()) -> Flow[tuple[Delivered, ...]]:
    """Send what an earlier process left in the outbox for this User and Company, but for the `busy` message IDs.

    What the Company refuses is dropped: it was not accepted, and whoever wrote it is gone. An error after which a
    message may have been accepted ends the sending, so that no later one overtakes it.
    """
    opened = yield from live.opened()
    delivered: list[Delivered] = []
    for row in (yield from pending(live, opened)):
        if row.message_id in busy:
            continue
        try:
            delivered.append((yield from deliver(live, row, later=True)))
        except (Refused, SignInNeeded):
            if (yield from is_waiting(row)):
                raise
    return tuple(delivered)


def read(live: LiveSession, conversation: ConversationId, wanted: Wanted, needed: Sequence[str] = ()) -> Flow[Page]:
    """A page of events, read with a token that covers `needed` where the account has one (8.11).

    Raises CursorExpired, Refused, RateLimited, SignInNeeded, FetchFailed (8.5, 8.13).
    """
    exchange, _ = yield from _patiently(
        live, lambda opened: opened.dialect.conversations.write_read(opened.endpoint, conversation, wanted), needed
    )
    if exchange.response.status >= 300:
        raise refusal(live, exchange)
    page = exchange.opened.dialect.conversations.read_page(exchange.response)
    check_same_conversation(page.conversation_id, conversation)
    return page


def listen(
    live: LiveSession, conversation: ConversationId, wanted: Wanted, needed: Sequence[str] = ()
) -> Flow[Page | StreamedResponse]:
    """A stream of events (8.6), or a page where the Company does not stream; `wanted.stream` is set. Raises as `read`.

    Only ever a read: whatever breaks, nothing is posted again.
    """
    exchange, _ = yield from _patiently(
        live, lambda opened: opened.dialect.conversations.write_read(opened.endpoint, conversation, wanted), needed
    )
    response = exchange.response
    if isinstance(response, StreamedResponse):
        return response
    if response.status >= 300:
        raise refusal(live, exchange)
    page = exchange.opened.dialect.conversations.read_page(response)
    check_same_conversation(page.conversation_id, conversation)
    return page


def authorize(live: LiveSession, conversation: ConversationId, needed: Sequence[str]) -> Flow[SignInNeeded | None]:
    """Have a token for what an `authorization` event names (8.11) → None; else what the User has to be asked for."""
    opened = yield from live.opened()
    request = opened.dialect.conversations.write_read(opened.endpoint, conversation, NOTHING)
    access = yield from access_for(live, opened, request, needed)
    if access is not None and covers(access.scopes, needed):
        return None
    return need_of((yield from account_of(live, opened)), needed)


def hand_off(live: LiveSession, conversation: ConversationId) -> Flow[tuple[Status, Responder]]:
    """Ask for a person (8.9)."""
    return (
        yield from _state(
            live, lambda opened: opened.dialect.conversations.write_hand_off(opened.endpoint, conversation)
        )
    )


def close(live: LiveSession, conversation: ConversationId) -> Flow[tuple[Status, Responder]]:
    """Close the conversation; repeating it changes nothing (8.12)."""
    return (
        yield from _state(live, lambda opened: opened.dialect.conversations.write_close(opened.endpoint, conversation))
    )


def refusal(live: LiveSession, exchange: Exchange) -> PapaverError:
    """What to raise for an answer that says no."""
    opened, response, needs = exchange
    if needs is not None:
        return needs
    received = opened.dialect.errors.read(response)
    code = "" if received is None else received.code
    if received is not None and (response.status == 401 or code == InsufficientScope.code):
        return SignInNeeded(received.attributes.get("scope", ""))
    if code == RateLimited.code:
        return RateLimited(retry_after(live, response))
    if code == TemporarilyUnavailable.code:
        return TemporarilyUnavailable(retry_after(live, response))
    if code == CursorExpired.code:
        return CursorExpired()
    named = "" if received is None else received.attributes.get("conversation_id", "")
    if code == DirectConversationOpen.code and is_id(named):
        return DirectConversationOpen(ConversationId(named))
    if _CODE.fullmatch(code) is None:  # none, or one that nobody may print
        code = f"http_{response.status}"
    return Refused(code, response, f"the Company answered {response.status}")


@rule("answer.same-conversation")
def check_same_conversation(found: ConversationId, asked: ConversationId) -> None:
    """An answer about another conversation is none. Raises Misbehaved."""
    if found != asked:
        raise Misbehaved("the answer is about another conversation", rule="answer.same-conversation")


def _state(live: LiveSession, build: Build) -> Flow[tuple[Status, Responder]]:
    exchange, _ = yield from _patiently(live, build)
    if exchange.response.status >= 300:
        raise refusal(live, exchange)
    return exchange.opened.dialect.conversations.read_state(exchange.response)


def _arranged(live: LiveSession, opened: OpenedSession) -> Flow[None]:
    """A Company that says that its endpoint needs an account gets no first request without one (3.2).

    It is a hint: where nobody can sign in, the Company's answer decides. Raises SignInNeeded.
    """
    entry = opened.found.document.conversations()
    if entry is None or entry.access is not Access.SIGNED_IN or not may_sign_in(live, opened.found):
        return
    row = yield from account_of(live, opened)
    if not is_in(row):
        raise need_of(row, ())


def _patiently(live: LiveSession, build: Build, needed: Sequence[str] = ()) -> Flow[tuple[Exchange, bool]]:
    """Send again what did not arrive, a little later each time, and once to where the endpoint is found instead.

    Every request of a conversation may be repeated. With the last answer comes whether an earlier try may have arrived
    as well.
    """
    limits = live.setup.limits
    attempt, pause = 1, limits.backoff
    before: FetchFailed | Exchange | None = None
    moved = False
    while True:
        try:
            exchange = yield from signed(live, build, needed)
        except FetchFailed as error:
            if error.fault is not FetchFault.UNREACHABLE or attempt == limits.attempts:
                if moved or not (yield from found_elsewhere(live)):
                    raise error
                moved, before, attempt, pause = True, error, 1, limits.backoff
                continue
            before = error
        except RateLimited:
            # Not sent this time. What is not known of an earlier try is not known still.
            if isinstance(before, FetchFailed):
                raise before from None
            if before is None:
                raise
            return before, True
        else:
            if attempt == limits.attempts or not _is_passing(exchange):
                return exchange, before is not None
            before = exchange
        seconds = min(pause, limits.backoff_most)
        _tell(before, seconds, attempt + 1, limits.attempts)
        yield from wait(seconds)
        attempt, pause = attempt + 1, pause * 2


def _tell(before: FetchFailed | Exchange, seconds: float, attempt: int, attempts: int) -> None:
    """Whoever waits in front of this is told why. Only a host name: the rest of a URL is nobody's business in a log."""
    if isinstance(before, FetchFailed):
        what = f"no answer from {before.url.partition('://')[2].partition('/')[0]}"
    else:
        what = f"{host_of(before.opened.endpoint)} answers {before.response.status}"
    logger.warning("%s; sending the same again in %g s (try %d of %d)", what, seconds, attempt, attempts)


def _settles(error: PapaverError, response: Response, *, unsure: bool) -> bool:
    """Whether a refusal proves that the message was not accepted. `unsure`: an earlier try may have been.

    A Company knows its retries before it looks at the conversation (readings 5, 7); whatever it refuses earlier than
    that says nothing of the try before.
    """
    if unsure:
        return error.code in OF_THE_MESSAGE
    too_soon = isinstance(error, RateLimited | TemporarilyUnavailable)
    return too_soon or (response.status < 500 and response.status not in UNDECIDED)


def _is_passing(exchange: Exchange) -> bool:
    """A gateway speaks for a server that is away: an error of the protocol would have its own code."""
    opened, response, _ = exchange
    return response.status in PASSING and opened.dialect.errors.read(response) is None


def _keep_conversation(
    live: LiveSession, row: OutboxRow, exchange: Exchange, answer: Accepted | Page
) -> Flow[ConversationRow]:
    """Know the conversation from now on, before the outbox forgets how it began."""
    opened = exchange.opened
    fresh = ConversationRow(
        company=opened.company_id,
        domain=opened.found.domain,
        user=live.whose.user,
        user_id=opened.user_id,
        conversation_id=answer.conversation_id,
        started_at=row.written_at,
        status=answer.status.value,
        responder=answer.responder.value,
        parent=row.parent,
    )
    key = row_key(opened.company_id, live.whose.user, answer.conversation_id)

    def decide(known: bytes | None) -> bytes:
        row = fresh if known is None else read_row(ConversationRow, known)
        return write_row(msgspec.structs.replace(row, status=fresh.status, responder=fresh.responder))

    stored = yield from keep(CONVERSATION, key, decide)
    return read_row(ConversationRow, stored or write_row(fresh))
