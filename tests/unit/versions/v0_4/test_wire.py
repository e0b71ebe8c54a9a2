"""The members of `poppy.json` are read without conversions."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from papaver.versions.v0_4.wire import NOT_HTTPS, ApiWire, AuthWire, ExtensionWire, HeadWire, ProtocolWire

HEAD: dict[str, object] = {"protocol_version": "0.4", "organization": {"name": "X", "domain": "x.example"}}


def kind_of(model: type[HeadWire] | type[ApiWire] | type[AuthWire] | type[ExtensionWire], value: object) -> str:
    """The type of the first fault."""
    with pytest.raises(ValidationError) as caught:
        model.model_validate(value)
    return caught.value.errors()[0]["type"]


def test_unknown_members_are_ignored() -> None:
    """At every level (3.3)."""
    head = HeadWire.model_validate({**HEAD, "x": 1, "organization": {"name": "X", "domain": "x.example", "y": {}}})
    assert head == HeadWire.model_validate(HEAD)


@pytest.mark.parametrize(
    "value",
    [
        {**HEAD, "protocol_version": 0.4},
        {**HEAD, "organization": None},
        {**HEAD, "organization": {"name": "", "domain": "x.example"}},
        {**HEAD, "auth": []},
        {**HEAD, "auth": {"disabled": "true"}},
        {**HEAD, "auth": {"disabled": 1}},
        [HEAD],
        "x",
    ],
)
def test_wrong_types_are_not_repaired(value: object) -> None:
    """A number is no string, and a string no boolean."""
    assert kind_of(HeadWire, value) != NOT_HTTPS


@pytest.mark.parametrize("url", ["http://x.example", "x.example", ""])
def test_a_url_that_is_not_https_has_its_own_fault(url: str) -> None:
    """Section 3."""
    assert kind_of(ApiWire, {"type": "mcp", "url": url, "description": "x"}) == NOT_HTTPS
    assert kind_of(AuthWire, {"issuer": url}) == NOT_HTTPS
    assert kind_of(ExtensionWire, {"version": "1", "endpoint": url}) == NOT_HTTPS


def test_an_extensions_endpoint_may_be_no_text() -> None:
    """Its members are the extension's own (3.3)."""
    assert ExtensionWire.model_validate({"version": "1", "endpoint": {"a": 1}}).endpoint == {"a": 1}
    assert ExtensionWire.model_validate({"version": "1"}).endpoint is None


def test_a_hint_may_be_anything() -> None:
    """Unfamiliar values are judged later (3.2)."""
    assert ProtocolWire.model_validate({"type": "poppy", "endpoint": "https://x.example/c", "access": 7}).access == 7
