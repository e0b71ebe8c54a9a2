"""What a Company may publish, and how a document identifies it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from papaver.protocol.company import (
    MEDIATED_SIGN_IN,
    Access,
    Api,
    Auth,
    CompanyAgent,
    CompanyDocument,
    ConversationProtocol,
    ExtensionEntry,
    Finding,
    Organization,
    Web,
    check_offer,
    check_offer_versions,
    company_identifier,
    company_urls,
    domain_url,
)
from papaver.protocol.dialect import Version
from papaver.protocol.errors import ConfigurationError

ISSUER = "https://auth.example.com"
ENDPOINT = "https://api.example.com/poppy/conversations"
PLAIN = CompanyDocument(Organization("Example Company", "example.com"), Version(0, 4), web=Web())
TALKING = replace(PLAIN, agent=CompanyAgent((ConversationProtocol("poppy", ENDPOINT),)))
FULL = CompanyDocument(
    organization=Organization("Example Company", "example.com", "https://example.com/logo.png"),
    protocol_version=Version(0, 4),
    supported_versions={Version(0, 3): "https://example.com/poppy/0.3.json"},
    auth=Auth(issuer=ISSUER),
    agent=CompanyAgent(
        (ConversationProtocol("other", "https://other.example/x"), ConversationProtocol("poppy", ENDPOINT))
    ),
    apis=(Api("mcp", "https://mcp.example.com/mcp?tenant=a", "Search"),),
    web=Web("https://example.com/poppy/browser-session"),
    feedback="https://api.example.com/poppy/feedback",
    excluded_tasks="https://example.com/poppy/excluded-tasks.json",
    extensions={"operations": (ExtensionEntry("2"),), "example.com/gift-wrap": (ExtensionEntry("1"),)},
)


def refused(document: CompanyDocument, issuer: str | None = None) -> str:
    """The rule that a document breaks."""
    with pytest.raises(ConfigurationError) as caught:
        check_offer(document, issuer)
    return caught.value.rule


def test_a_complete_document_may_be_published() -> None:
    """Everything of 3.1 at once, an MCP URL with a query included, breaks no rule."""
    check_offer(FULL, ISSUER)
    check_offer(replace(FULL, auth=Auth()), ISSUER)


@pytest.mark.requirement("3.2-04")
def test_the_identifier_without_an_issuer_is_the_lowercase_domain() -> None:
    """No path, no slash, no uppercase (3.2)."""
    shop = replace(PLAIN, organization=Organization("Shop", "Shop.Example"))
    assert company_identifier(shop, None) == "https://shop.example"
    assert domain_url("Shop.Example") == "https://shop.example"


def test_the_identifier_with_an_issuer_is_the_issuer_as_it_is() -> None:
    """Character for character, a slash included (3.2)."""
    assert company_identifier(PLAIN, "https://Auth.example.com/") == "https://Auth.example.com/"


@pytest.mark.requirement("3.2-16")
def test_turning_sign_in_off_leaves_the_identifier_alone() -> None:
    """`auth.disabled` changes nothing about who the Company is (3.2)."""
    assert company_identifier(replace(PLAIN, auth=Auth(disabled=True)), ISSUER) == ISSUER


@pytest.mark.requirement("3.2-05")
def test_two_domains_without_an_issuer_are_two_companies() -> None:
    """Each domain has its own identifier (3.2)."""
    other = replace(PLAIN, organization=Organization("Example Company", "b.example"))
    assert company_identifier(PLAIN, None) != company_identifier(other, None)


@pytest.mark.requirement("3.2-23", "3.2-28", "3.2-29")
def test_domains_with_one_issuer_are_one_company_whatever_else_differs() -> None:
    """The issuer is the identifier; scopes, APIs and website may differ by domain (3.2)."""
    other = replace(
        PLAIN,
        organization=Organization("Example UK", "example.co.uk"),
        auth=Auth(scopes={"returns": "Return items"}),
        web=Web("https://example.co.uk/j"),
    )
    check_offer(other, ISSUER)
    assert company_identifier(FULL, ISSUER) == company_identifier(other, ISSUER)


def test_the_first_poppy_entry_is_the_conversation_endpoint() -> None:
    """Unfamiliar types are skipped (8.1)."""
    found = FULL.conversations()
    assert found is not None
    assert found.endpoint == ENDPOINT
    assert PLAIN.conversations() is None


def test_every_url_is_listed_with_its_pointer() -> None:
    """The pointers lead into the document; extensions' members are not looked at."""
    assert dict(company_urls(FULL)) == {
        "/organization/logo_uri": "https://example.com/logo.png",
        "/auth/issuer": ISSUER,
        "/supported_versions/0.3": "https://example.com/poppy/0.3.json",
        "/apis/0/url": "https://mcp.example.com/mcp?tenant=a",
        "/excluded_tasks/url": "https://example.com/poppy/excluded-tasks.json",
        "/agent/protocols/0/endpoint": "https://other.example/x",
        "/agent/protocols/1/endpoint": ENDPOINT,
        "/web/browser_session_endpoint": "https://example.com/poppy/browser-session",
        "/feedback/endpoint": "https://api.example.com/poppy/feedback",
    }
    assert dict(company_urls(PLAIN)) == {}


@pytest.mark.requirement("papaver-11")
@pytest.mark.parametrize("domain", ["Example.com", "example.com:443", "https://example.com", "example.com.", "1.2.3.4"])
def test_a_domain_is_a_bare_lowercase_name(domain: str) -> None:
    """The one form that every side compares (readings 13, 53)."""
    assert refused(replace(PLAIN, organization=Organization("X", domain))) == "offer.domain-is-a-name"


@pytest.mark.requirement("3.1-18", "8.1-01")
@pytest.mark.parametrize("agent", [None, CompanyAgent(())], ids=["none", "agent-without-protocol"])
def test_a_company_without_a_channel_is_refused(agent: CompanyAgent | None) -> None:
    """At least one of agent, apis and web (3.1)."""
    assert refused(replace(PLAIN, web=None, agent=agent)) == "offer.one-channel"


@pytest.mark.requirement("8.1-01")
def test_an_agent_without_a_protocol_is_refused_beside_another_channel() -> None:
    """It would be listed and could not be reached."""
    assert refused(replace(PLAIN, agent=CompanyAgent(()))) == "offer.one-channel"


@pytest.mark.requirement("3.1-18")
@pytest.mark.parametrize(
    "document",
    [PLAIN, replace(TALKING, web=None), replace(PLAIN, web=None, apis=(Api("openapi", "https://a.example/o", "A"),))],
    ids=["web", "agent", "apis"],
)
def test_any_single_channel_suffices(document: CompanyDocument) -> None:
    """Each of the three alone makes a document (3.1)."""
    check_offer(document, None)


@pytest.mark.requirement("3-12")
@pytest.mark.parametrize("url", ["http://x.example/y", "ws://x.example/y", "javascript:alert(1)", "x.example/y"])
@pytest.mark.parametrize("where", ["logo", "version", "api", "tasks", "agent", "web", "feedback"])
def test_every_published_url_is_https(where: str, url: str) -> None:
    """Wherever it stands in the document (section 3)."""
    documents = {
        "logo": replace(PLAIN, organization=Organization("X", "example.com", url)),
        "version": replace(PLAIN, supported_versions={Version(0, 3): url}),
        "api": replace(PLAIN, apis=(Api("mcp", url, "A"),)),
        "tasks": replace(PLAIN, excluded_tasks=url),
        "agent": replace(PLAIN, agent=CompanyAgent((ConversationProtocol("poppy", url),))),
        "web": replace(PLAIN, web=Web(url)),
        "feedback": replace(PLAIN, feedback=url),
    }
    assert refused(documents[where]) == "offer.https"


@pytest.mark.requirement("papaver-18")
@pytest.mark.parametrize("tail", ["/", "?x=1", "?", "#top"])
def test_an_endpoint_is_bare(tail: str) -> None:
    """Routes are appended to it as it is (readings 44)."""
    assert refused(replace(PLAIN, feedback=f"https://a.example/f{tail}")) == "offer.endpoint-bare"


@pytest.mark.requirement("papaver-12")
@pytest.mark.parametrize("issuer", ["http://auth.example.com", f"{ISSUER}?x=1", f"{ISSUER}#x", "auth"])
def test_an_issuer_is_an_https_url_without_query_and_fragment(issuer: str) -> None:
    """RFC 8414, section 2."""
    assert refused(PLAIN, issuer) == "offer.issuer"


@pytest.mark.requirement("3.2-14")
@pytest.mark.parametrize("issuer", [None, "https://auth.example.com/", "https://other.example"])
def test_auth_issuer_names_the_companys_own_issuer(issuer: str | None) -> None:
    """Exactly, and only when there is one (3.1)."""
    assert refused(replace(PLAIN, auth=Auth(issuer=ISSUER)), issuer) == "offer.issuer"


@pytest.mark.requirement("3.2-53", "3.2-54")
@pytest.mark.parametrize(("issuer", "disabled"), [(None, False), (ISSUER, True)])
def test_signed_in_access_needs_sign_in(issuer: str | None, disabled: bool) -> None:
    """An issuer, and sign-in that is not turned off (3.2)."""
    entry = ConversationProtocol("poppy", ENDPOINT, Access.SIGNED_IN)
    document = replace(PLAIN, agent=CompanyAgent((entry,)), auth=Auth(disabled=disabled))
    assert refused(document, issuer) == "offer.signed-in-needs-issuer"
    check_offer(replace(document, auth=Auth()), ISSUER)


@pytest.mark.requirement("3.2-19")
def test_sign_in_that_is_off_excludes_mediated_sign_in() -> None:
    """3.2."""
    document = replace(PLAIN, auth=Auth(disabled=True), extensions={MEDIATED_SIGN_IN: (ExtensionEntry("1"),)})
    assert refused(document, ISSUER) == "offer.disabled-without-mediated"
    check_offer(replace(document, auth=Auth()), ISSUER)


@pytest.mark.requirement("3.3-02", "3.3-03")
@pytest.mark.parametrize("name", ["gift-wrap", "", "gift/wrap", "/wrap", "example.com/", "-x.com/y", "example.com/ü"])
def test_an_extension_name_begins_with_a_domain(name: str) -> None:
    """Plain names are the protocol's own (3.3)."""
    assert refused(replace(PLAIN, extensions={name: (ExtensionEntry("1"),)})) == "offer.extension-names"


@pytest.mark.requirement("3.3-01")
@pytest.mark.parametrize("versions", [("1", "1"), (), ("",)], ids=["twice", "none", "empty"])
def test_an_extension_has_one_entry_for_each_version(versions: tuple[str, ...]) -> None:
    """3.3."""
    entries = tuple(ExtensionEntry(version) for version in versions)
    assert refused(replace(PLAIN, extensions={"example.com/x": entries})) == "offer.extension-versions"
    check_offer(replace(PLAIN, extensions={"example.com/x": (ExtensionEntry("2"), ExtensionEntry("1"))}), None)


@pytest.mark.requirement("3.4-02")
@pytest.mark.parametrize(
    ("version", "url"),
    [
        (Version(0, 3), "https://api.example.com/poppy/0.3.json"),
        (Version(0, 3), "https://example.co.uk/0.3.json"),
        (Version(0, 4), "https://example.com/poppy/0.4.json"),
    ],
    ids=["subdomain", "another-domain", "its-own-version"],
)
def test_other_versions_are_served_on_the_companys_domain(version: Version, url: str) -> None:
    """On the host that serves `poppy.json`, and other versions only (3.4)."""
    assert refused(replace(PLAIN, supported_versions={version: url})) == "offer.versions"


def test_the_version_check_judges_a_text_that_is_no_url() -> None:
    """Alone, as a linter calls it, it refuses instead of failing."""
    with pytest.raises(ConfigurationError) as caught:
        check_offer_versions(replace(PLAIN, supported_versions={Version(0, 3): "nowhere"}))
    assert caught.value.rule == "offer.versions"


def test_findings_do_not_make_two_documents_differ() -> None:
    """They are about how a document was read."""
    assert replace(PLAIN, findings=(Finding("document.part", "/x", "y"),)) == PLAIN
