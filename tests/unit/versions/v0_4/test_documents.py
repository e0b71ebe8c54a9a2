"""`poppy.json` of draft 0.4: strict about who the Company is, entry by entry about what it offers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from papaver.protocol.company import (
    Access,
    Api,
    Auth,
    Changes,
    CompanyAgent,
    CompanyDocument,
    ConversationProtocol,
    ExtensionEntry,
    Organization,
    ScopeHint,
    Web,
)
from papaver.protocol.dialect import Version
from papaver.protocol.errors import DiscoveryFailed
from papaver.versions.v0_4.documents import DOCUMENTS

EXAMPLE = json.loads((Path(__file__).parents[3] / "vectors" / "poppy-0.4.json").read_text("utf-8"))
ORGANIZATION = {"name": "Example Company", "domain": "example.com"}
DOCUMENT: dict[str, Any] = {"protocol_version": "0.4", "organization": ORGANIZATION, "web": {}}
FULL = CompanyDocument(
    organization=Organization("Example Company", "example.com", "https://example.com/logo.png"),
    protocol_version=Version(0, 4),
    supported_versions={Version(0, 3): "https://example.com/poppy/0.3.json"},
    auth=Auth(
        "https://auth.example.com", True, {"orders:read": "See"}, {"orders:read": ScopeHint(Changes.REVERSIBLE, False)}
    ),
    agent=CompanyAgent(
        (
            ConversationProtocol("poppy", "https://example.com/c"),
            ConversationProtocol("poppy", "https://example.com/d", Access.SIGNED_IN),
        )
    ),
    apis=(Api("openapi", "https://example.com/openapi.json", "Orders"), Api("new", "https://example.com/new", "")),
    web=Web("https://example.com/poppy/browser-session"),
    feedback="https://example.com/feedback",
    excluded_tasks="https://example.com/tasks.json",
    extensions={"x.example/y": (ExtensionEntry("2", {"endpoint": "https://x.example/2"}), ExtensionEntry("1"))},
    skill_index={"$schema": "https://schemas.agentskills.io/discovery/0.2.0/schema.json", "skills": []},
)


def read(**members: object) -> CompanyDocument:
    """A small document with these members."""
    return DOCUMENTS.read({**DOCUMENT, **members})


def left_out(**members: object) -> list[tuple[str, str]]:
    """Rule and place of what is left out of a document that is used all the same."""
    return [(finding.rule, finding.where) for finding in read(**members).findings]


def refused(document: object) -> str:
    """The rule by which a document is refused; both values and a remedy are shown."""
    with pytest.raises(DiscoveryFailed) as caught:
        DOCUMENTS.read(document)
    assert caught.value.expected
    assert caught.value.found
    assert caught.value.remedy
    return caught.value.rule


def test_the_specifications_example_reads_and_writes_back() -> None:
    """The document of section 3, member for member."""
    document = DOCUMENTS.read(EXAMPLE)
    assert DOCUMENTS.write(document) == EXAMPLE
    assert document.findings == ()
    assert document.auth.scope_hints["orders:write"] == ScopeHint(Changes.IRREVERSIBLE, True)
    talk = document.conversations()
    assert talk is not None
    assert talk.endpoint == "https://api.example.com/poppy/conversations"


def test_every_member_survives_being_written_and_read() -> None:
    """All of 3.1 at once."""
    written = DOCUMENTS.write(FULL)
    again = DOCUMENTS.read(json.loads(json.dumps(written)))
    assert again == FULL
    assert again.findings == ()


def test_absent_members_and_defaults_are_not_written() -> None:
    """The smallest document stays small; an empty `web` is a channel."""
    document = CompanyDocument(Organization("Example Company", "example.com"), Version(0, 4), web=Web())
    assert DOCUMENTS.write(document) == DOCUMENT
    assert DOCUMENTS.read(DOCUMENT) == document
    apis = (Api("mcp", "https://example.com/mcp", "Search"),)
    assert "web" not in DOCUMENTS.write(CompanyDocument(document.organization, document.protocol_version, apis=apis))


# Who the Company is


@pytest.mark.requirement("3.1-01", "3.1-05")
@pytest.mark.parametrize(
    "members",
    [
        {"protocol_version": None},
        {"protocol_version": 0.4},
        {"organization": None},
        {"organization": "Example"},
        {"organization": {"name": "X"}},
        {"organization": {"domain": "example.com"}},
        {"organization": {"name": 7, "domain": "example.com"}},
        {"organization": {"name": "X", "domain": ["example.com"]}},
        {"organization": {"name": "X", "domain": ""}},
        {"auth": "none"},
        {"auth": {"issuer": 7}},
        {"auth": {"issuer": "http://auth.example.com"}},
        {"auth": {"disabled": "yes"}},
    ],
)
def test_a_document_that_does_not_say_who_the_company_is_is_refused(members: dict[str, object]) -> None:
    """As a whole: nothing about identity is skipped (3.1)."""
    assert refused({**DOCUMENT, **members}) == "document.members"


@pytest.mark.parametrize("document", [None, [], "x", 5, [DOCUMENT]])
def test_what_is_no_object_is_no_document(document: object) -> None:
    """Whatever JSON it is."""
    assert refused(document) == "document.members"


@pytest.mark.requirement("3.1-01")
@pytest.mark.parametrize("version", ["0.4.0", "4", "", "v0.4", "0.4 "])
def test_protocol_version_is_major_and_minor(version: str) -> None:
    """As a string (3.1)."""
    assert refused({**DOCUMENT, "protocol_version": version}) == "document.protocol-version"


@pytest.mark.requirement("3.1-09", "3.1-14")
@pytest.mark.parametrize("auth", [None, {}, {"issuer": None, "disabled": None, "scopes": None, "scope_hints": None}])
def test_sign_in_details_are_optional(auth: object) -> None:
    """Null counts as absent, and sign-in is not turned off by default (3.1)."""
    assert read(auth=auth).auth == Auth()
    assert read(auth={"disabled": True}).auth.disabled is True


@pytest.mark.requirement("3.1-18")
@pytest.mark.parametrize(
    "members",
    [
        {},
        {"web": "yes"},
        {"apis": []},
        {"agent": {"protocols": []}},
        {"agent": {"protocols": [{"type": "poppy", "endpoint": "http://example.com/c"}]}},
    ],
)
def test_a_document_without_a_usable_channel_is_refused(members: dict[str, object]) -> None:
    """At least one of agent, apis and web (3.1)."""
    without = {name: value for name, value in DOCUMENT.items() if name != "web"}
    assert refused({**without, **members}) == "document.one-channel"


# What it offers


@pytest.mark.requirement("3.3-09")
def test_unfamiliar_members_are_ignored() -> None:
    """Wherever they are, whatever their type (3.3)."""
    odd: dict[str, Any] = {
        "x": [{"y": None}],
        "organization": {**ORGANIZATION, "z": 1},
        "auth": {"z": []},
        "web": {"z": 1},
    }
    assert read(**odd) == DOCUMENTS.read(DOCUMENT)


@pytest.mark.requirement("3-13", "3-12")
@pytest.mark.parametrize(
    ("members", "where"),
    [
        ({"organization": {**ORGANIZATION, "logo_uri": "http://x.example/l"}}, "/organization/logo_uri"),
        ({"supported_versions": {"0.3": "http://example.com/0.3"}}, "/supported_versions/0.3/url"),
        (
            {"agent": {"protocols": [{"type": "poppy", "endpoint": "http://example.com/c"}]}},
            "/agent/protocols/0/endpoint",
        ),
        ({"apis": [{"type": "mcp", "url": "ws://x.example", "description": "x"}]}, "/apis/0/url"),
        ({"web": {"browser_session_endpoint": "example.com/j"}}, "/web/browser_session_endpoint"),
        ({"feedback": {"endpoint": "javascript:x"}}, "/feedback/endpoint"),
        ({"excluded_tasks": {"url": "http://example.com/t"}}, "/excluded_tasks/url"),
        (
            {"extensions": {"x.example/y": [{"version": "1", "endpoint": "http://x.example"}]}},
            "/extensions/x.example/y/0",
        ),
    ],
)
def test_a_url_that_is_not_https_is_left_out(members: dict[str, object], where: str) -> None:
    """It is told, and never used (section 3)."""
    document = read(**members)
    assert [finding.rule for finding in document.findings] == ["document.https"]
    assert document.findings[0].where.startswith(where)
    written = json.dumps(DOCUMENTS.write(document))
    assert "http://" not in written
    assert "ws://" not in written
    assert "javascript:" not in written
    assert '"web": {}' in written


@pytest.mark.requirement("3.1-04")
def test_other_versions_are_named_as_versions() -> None:
    """`major.minor` → URL (3.1)."""
    urls = {"0.3": "https://example.com/0.3", "latest": "https://example.com/l", "0.2": 7}
    assert read(supported_versions=urls).supported_versions == {Version(0, 3): "https://example.com/0.3"}
    assert left_out(supported_versions=urls) == [
        ("document.part", "/supported_versions/latest"),
        ("document.part", "/supported_versions/0.2/url"),
    ]
    assert left_out(supported_versions=["0.3"]) == [("document.part", "/supported_versions")]


@pytest.mark.requirement("3.1-06")
def test_a_logo_is_an_https_url() -> None:
    """Absent is fine; relative is left out (3.1)."""
    assert read().organization.logo_uri is None
    assert left_out(organization={**ORGANIZATION, "logo_uri": "/logo.png"}) == [
        ("document.https", "/organization/logo_uri")
    ]


def test_scope_descriptions_are_texts() -> None:
    """3.1."""
    auth: dict[str, Any] = {"scopes": {"a": "See", "b": ["x"], "c": {}}}
    assert read(auth=auth).auth.scopes == {"a": "See"}
    assert [where for _, where in left_out(auth=auth)] == [
        "/auth/scopes/b/description",
        "/auth/scopes/c/description",
    ]


@pytest.mark.parametrize("changes", ["destroys", None, 7, "IRREVERSIBLE", ["none"]])
def test_an_unfamiliar_change_is_irreversible(changes: object) -> None:
    """4.7."""
    hints = read(auth={"scope_hints": {"a": {"changes": changes, "personal_data": False, "x": 1}}}).auth.scope_hints
    assert hints == {"a": ScopeHint(Changes.IRREVERSIBLE, False)}


@pytest.mark.parametrize(
    "hint", [{}, {"changes": "none"}, {"personal_data": True}, {"changes": "none", "personal_data": 1}, 5]
)
def test_a_hint_without_both_members_is_no_hint(hint: object) -> None:
    """What the scope allows cannot be told (4.7)."""
    document = read(auth={"scope_hints": {"a": hint}})
    assert document.auth.scope_hints == {}
    assert [finding.rule for finding in document.findings] == ["document.part"]


@pytest.mark.requirement("3.1-19", "8.1-01")
@pytest.mark.parametrize(
    "entry",
    [{"type": "poppy"}, {"endpoint": "https://x.example"}, {"type": "", "endpoint": "https://x.example"}, "poppy"],
)
def test_a_conversation_protocol_has_type_and_endpoint(entry: object) -> None:
    """Another entry is used all the same (3.1)."""
    good = {"type": "poppy", "endpoint": "https://example.com/c"}
    document = read(agent={"protocols": [entry, good]})
    assert document.agent == CompanyAgent((ConversationProtocol("poppy", "https://example.com/c"),))
    assert document.findings[0].where.startswith("/agent/protocols/0")


@pytest.mark.parametrize("agent", ["x", {}, {"protocols": {}}])
def test_an_agent_of_another_shape_is_left_out(agent: object) -> None:
    """The website is used all the same."""
    document = read(agent=agent)
    assert document.agent is None
    assert [finding.rule for finding in document.findings] == ["document.part"]


@pytest.mark.requirement("3.1-20")
@pytest.mark.parametrize(
    ("access", "read_as"),
    [
        ("session", Access.SESSION),
        ("signed_in", Access.SIGNED_IN),
        (None, Access.SESSION),
        ("premium", Access.SESSION),
        (7, Access.SESSION),
        (["signed_in"], Access.SESSION),
    ],
)
def test_access_is_a_hint(access: object, read_as: Access) -> None:
    """Unfamiliar values count as absent (3.2)."""
    document = read(agent={"protocols": [{"type": "poppy", "endpoint": "https://example.com/c", "access": access}]})
    talk = document.conversations()
    assert talk is not None
    assert talk.access is read_as
    assert document.findings == ()


@pytest.mark.requirement("3.1-21")
@pytest.mark.parametrize("missing", ["type", "url", "description"])
def test_an_api_has_type_url_and_description(missing: str) -> None:
    """An entry without one of them is left out (3.1)."""
    entry = {"type": "mcp", "url": "https://example.com/mcp", "description": "Search"}
    less = {name: value for name, value in entry.items() if name != missing}
    document = read(apis=[less, entry])
    assert document.apis == (Api("mcp", "https://example.com/mcp", "Search"),)
    assert [finding.where for finding in document.findings] == [f"/apis/0/{missing}"]
    assert left_out(apis={"0": entry}) == [("document.part", "/apis")]


@pytest.mark.requirement("3.2-58")
def test_an_api_declares_no_scopes_of_its_own() -> None:
    """OpenAPI and MCP say themselves what they need; a member beside the three is ignored (3.2)."""
    entry = {"type": "mcp", "url": "https://example.com/mcp", "description": "Search"}
    assert read(apis=[{**entry, "scopes": ["orders:read"], "access": "signed_in"}]) == read(apis=[entry])


@pytest.mark.requirement("3.1-22")
def test_a_website_may_have_a_join_endpoint() -> None:
    """Without a usable one it is browsed as by any visitor (3.1)."""
    assert read(web={}).web == Web()
    assert read(web={"browser_session_endpoint": "https://example.com/j"}).web == Web("https://example.com/j")
    assert read(web={"browser_session_endpoint": 7}).web == Web()


@pytest.mark.requirement("3.1-24", "3.1-25")
@pytest.mark.parametrize("value", [{}, "https://example.com/x", {"endpoint": 7, "url": 7}, []])
def test_feedback_and_excluded_tasks_have_their_url(value: object) -> None:
    """Else they are left out (3.1)."""
    document = read(feedback=value, excluded_tasks=value)
    assert (document.feedback, document.excluded_tasks) == (None, None)
    assert len(document.findings) == 2


@pytest.mark.requirement("3.1-26", "3.3-04")
def test_extensions_have_an_entry_for_each_version() -> None:
    """Other fields are kept for whoever knows the extension (3.3)."""
    extensions = {
        "x.example/y": [
            {"version": "2", "endpoint": "https://x.example/2", "more": [1]},
            {"version": 1},
            {"endpoint": "https://x.example"},
            {"version": "2", "again": True},
            "1",
        ],
        "x.example/empty": [],
        "x.example/odd": {"version": "1"},
    }
    document = read(extensions=extensions)
    assert document.extensions == {
        "x.example/y": (ExtensionEntry("2", {"endpoint": "https://x.example/2", "more": [1]}),)
    }
    assert [finding.where for finding in document.findings] == [
        "/extensions/x.example/y/1/version",
        "/extensions/x.example/y/2/version",
        "/extensions/x.example/y/3",
        "/extensions/x.example/y/4",
        "/extensions/x.example/odd",
    ]


@pytest.mark.requirement("3.3-08")
def test_unfamiliar_extensions_do_no_harm() -> None:
    """The document is used, whatever they are called (3.3)."""
    extensions = {"whatever": [{"version": "9"}], "": [{"version": "1"}]}
    assert read(extensions=extensions).findings == ()


@pytest.mark.requirement("3.1-27")
def test_a_skill_index_is_kept_as_published() -> None:
    """Whoever uses skills judges it (9.4)."""
    index = {"$schema": "x", "skills": [{"name": "a"}]}
    assert read().skill_index is None
    assert read(skill_index=index).skill_index == index
    assert read(skill_index={}).skill_index == {}
    assert read(skill_index=[]).skill_index is None
    assert left_out(skill_index=[]) == [("document.part", "/skill_index")]
