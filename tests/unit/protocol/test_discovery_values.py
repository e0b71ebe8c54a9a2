"""What the steps of discovery hand to each other."""

from __future__ import annotations

from papaver.protocol.discovery_values import CheckResult, Checks


def test_checks_are_kept_in_the_order_in_which_they_were_made() -> None:
    """What passed and what is only a finding, told apart."""
    checks = Checks()
    checks.passed("discovery.final-path", "as it should be")
    checks.noted("document.https", "/apis/0/url: not an https URL")
    assert checks.made == (
        CheckResult("discovery.final-path", True, "as it should be"),
        CheckResult("document.https", False, "/apis/0/url: not an https URL"),
    )


def test_what_was_made_does_not_change_afterwards() -> None:
    """A result keeps the checks that led to it."""
    checks = Checks()
    before = checks.made
    checks.passed("discovery.final-path", "")
    assert before == ()
