"""The Company's own checks, each alone: what it accepts, what it refuses, and by which rule."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from starlette.applications import Starlette

from papaver.adapters.starlette import Poppy
from papaver.company.app import Company
from papaver.company.clients import check_accepted, check_keys_usable
from papaver.company.conversations import check_text
from papaver.company.offer import check_retirements, check_served_versions
from papaver.company.turn import check_answers_async, check_author
from papaver.jose.keys import KeySet, PrivateKey, write_key_set
from papaver.protocol.conversation.model import Author, AuthorType, Message
from papaver.protocol.errors import ConfigurationError, InvalidSession, PayloadTooLarge
from papaver.protocol.negotiation import Retirement
from papaver.protocol.terms import ClientId, MessageId
from papaver.stores.memory import MemoryStore
from papaver.testing.clock import SeededIds
from papaver.testing.company import company_bench
from papaver.testing.pair import echoing
from papaver.values.errors import PapaverError
from papaver.versions import DIALECTS

CLIENT = ClientId("https://agent.example/agent.json")
KEY = PrivateKey.generate()
VERSION = str(max(DIALECTS))


def refused(kind: type[PapaverError], rule: str, check: Callable[..., object], *arguments: Any, **named: Any) -> None:
    """The check refuses by its own rule, and says something."""
    with pytest.raises(kind) as caught:
        check(*arguments, **named)
    assert caught.value.rule == rule
    assert caught.value.description


@pytest.mark.requirement("papaver-13")
@pytest.mark.parametrize("keys", [[], [{**KEY.public.entry(), "use": "enc"}], [{"kty": "oct", "kid": "a"}]])
def test_b57_a_key_set_without_a_usable_key_proves_nothing(keys: list[dict[str, object]]) -> None:
    """Empty, or full of keys for something else."""
    refused(InvalidSession, "client.keys-usable", check_keys_usable, KeySet.read({"keys": keys}))
    check_keys_usable(KeySet.read(write_key_set([KEY.public])))


@pytest.mark.requirement("4.1-16", "7-30")
def test_c46_a_client_is_accepted_by_the_list_or_the_policy() -> None:
    """A verdict of the operator goes before the policy."""
    refused(InvalidSession, "client.accepted", check_accepted, CLIENT, "blocked", "all")
    refused(InvalidSession, "client.accepted", check_accepted, CLIENT, None, "allowed")
    check_accepted(CLIENT, None, "all")
    check_accepted(CLIENT, "allowed", "allowed")


@pytest.mark.requirement("papaver-20")
@pytest.mark.parametrize(("text", "fits"), [("ü" * 5, True), ("ü" * 5 + "u", False), ("u" * 11, False)])
def test_a_company_may_take_shorter_texts_only(text: str, fits: bool) -> None:
    """Counted in octets of UTF-8."""
    message = Message(MessageId("m"), Author(AuthorType.AGENT), text=text)
    if fits:
        check_text(message, 10)
    else:
        refused(PayloadTooLarge, "limits.text", check_text, message, 10)
    check_text(None, 10)


@pytest.mark.requirement("3.4-01")
@pytest.mark.parametrize("protocols", [(), ("9.9",), ("0",), (VERSION, VERSION), (f"{VERSION}.0",)])
def test_the_versions_served_are_implemented_and_named_once(protocols: tuple[str, ...]) -> None:
    """Drafts are named exactly: none is served because another one is."""
    refused(ConfigurationError, "offer.served-versions", check_served_versions, protocols)
    refused(ConfigurationError, "offer.served-versions", echoing, protocols=protocols)
    check_served_versions((VERSION,))


@pytest.mark.requirement("ca-12")
@pytest.mark.parametrize("local_path", ["/elsewhere", "poppy", "oppy", "/poppy/"])
def test_b21_what_the_app_sees_is_a_tail_of_the_public_path(local_path: str) -> None:
    """A proxy can strip a prefix, and nothing else."""
    refused(ConfigurationError, "offer.local-path", echoing, local_path=local_path)
    for tail in ("", "/poppy", None):
        assert echoing(local_path=tail).offer.endpoint == "https://api.example.com/poppy/conversations"


@pytest.mark.requirement("3.4-25")
@pytest.mark.parametrize(
    "retirements", [{"9.9": Retirement(1.0)}, {VERSION: Retirement(deprecated=2.0, sunset=1.0)}], ids=["other", "order"]
)
def test_what_is_said_to_end_is_served_and_ends_after_it_is_deprecated(retirements: dict[str, Retirement]) -> None:
    """RFC 9745 4."""
    refused(ConfigurationError, "offer.retirements", check_retirements, retirements, (VERSION,))
    refused(ConfigurationError, "offer.retirements", echoing, retirements=retirements)
    check_retirements({VERSION: Retirement(1.0, 1.0)}, (VERSION,))


@pytest.mark.requirement("8.4-24")
@pytest.mark.parametrize("image", ["http://example.com/n.png", "n.png", "data:image/png;base64,AA=="])
def test_the_picture_of_an_author_is_at_an_https_url(image: str) -> None:
    """Whoever shows it fetches it."""
    refused(ConfigurationError, "reply.author-image", check_author, Author(AuthorType.HUMAN, name="Nina", image=image))
    check_author(Author(AuthorType.HUMAN, image="https://example.com/n.png"))
    check_author(Author(AuthorType.AGENT))
    check_author(None)


@pytest.mark.requirement("ca-112")
@pytest.mark.parametrize("wrong", [{"store": None}, {"store": "poppy.db"}, {"accept": "known"}])
def test_c2_without_a_store_or_with_a_mistyped_policy_nothing_is_built(wrong: dict[str, Any]) -> None:
    """Without the one no Session could be verified, and the other would accept everybody."""
    refused(ConfigurationError, "configuration.choices", echoing, **wrong)


@pytest.mark.requirement("ca-02")
@pytest.mark.parametrize(
    "other",
    [
        {"domain": "example.com", "base_url": "https://api.example.com/other"},
        {"domain": "other.example", "base_url": "https://api.example.com/poppy"},
    ],
)
def test_two_companies_of_one_app_are_told_apart_by_domain_and_path(other: dict[str, str]) -> None:
    """Else one would answer for the other."""
    app = Starlette()
    Poppy(app, echoing())
    refused(ConfigurationError, "configuration.distinct-companies", Poppy, app, echoing(**other))
    Poppy(app, echoing("other.example", base_url="https://api.example.com/other"))


@pytest.mark.anyio
@pytest.mark.requirement("papaver-24")
async def test_a_company_runs_once() -> None:
    """The second attempt changes nothing for the first."""
    shop = Company(domain="example.com", name="Example", base_url="https://api.example.com/poppy", store=MemoryStore())

    @shop.conversation
    async def answer(turn: object) -> None:
        return None

    async with company_bench(shop) as bench:
        with pytest.raises(ConfigurationError) as caught:
            await shop.wire(bench.clock, SeededIds("again"), bench.documents)
        assert caught.value.rule == "configuration.runs-once"
        assert (await bench.start()).status == 201


class Answering:
    """Handlers of every kind that can be awaited or iterated."""

    async def __call__(self, turn: object) -> str:
        return "x"

    async def answer(self, turn: object, more: int = 0) -> str:
        return "x"

    async def pieces(self, turn: object) -> AsyncIterator[str]:
        yield "x"


class Slow:
    """Handlers that would hold up everybody."""

    def __call__(self, turn: object) -> str:
        return "x"

    def answer(self, turn: object, more: int = 0) -> str:
        return "x"


@functools.wraps(Answering.answer)
def wrapped(*given: Any) -> Any:
    """What a decorator makes of an async function."""
    return Answering().answer(*given)


@pytest.mark.parametrize(
    "handler",
    [
        Answering(),
        Answering().answer,
        Answering().pieces,
        functools.partial(Answering().answer, more=1),
        functools.partial(Answering()),
        wrapped,
    ],
    ids=["object", "method", "generator", "partial", "partial-object", "wrapped"],
)
def test_a_handler_is_async_in_whatever_form(handler: object) -> None:
    """A function, a method, an object that can be called, or a part of one."""
    check_answers_async(handler)


@pytest.mark.parametrize(
    ("handler", "named"),
    [
        (Slow(), "Slow object"),
        (Slow().answer, "Slow.answer, which is not async"),
        (functools.partial(Slow().answer, more=1), "Slow.answer, which is not async"),
        (Answering, "the class Answering"),
        (str, "the class str"),
        (3, "the handler is 3,"),
    ],
    ids=["object", "method", "partial", "class", "builtin", "number"],
)
@pytest.mark.requirement("papaver-28")
def test_a_handler_that_is_not_async_is_refused_when_it_is_given(handler: Any, named: str) -> None:
    """By its name, and not at the first message."""
    company = Company(domain="a.example", name="A", base_url="https://a.example/p", store=MemoryStore())
    with pytest.raises(ConfigurationError) as caught:
        company.conversation(handler)
    assert caught.value.rule == "configuration.handler-is-async"
    assert named in caught.value.description
