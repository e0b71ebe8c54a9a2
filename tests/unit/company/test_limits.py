"""Counters of requests (5.6)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from papaver.company.limits import Rates, check_rate, is_of_one_party, network_of
from papaver.protocol.errors import RateLimited

KEY = ("user", "usr_dana")


def test_what_is_within_the_limit_is_counted_and_passes() -> None:
    """And each key by itself."""
    rates = Rates(10)
    assert [rates.count(KEY, 3, 0) for _ in range(3)] == [0, 0, 0]
    assert rates.count(KEY, 3, 0) > 0
    assert rates.count(("user", "usr_robin"), 3, 0) == 0


def test_the_refusal_says_what_is_over_and_when_to_come_back() -> None:
    """The key is for the log; the seconds are for the caller."""
    rates = Rates(10)
    check_rate(rates, KEY, 1, 30.0)
    with pytest.raises(RateLimited) as caught:
        check_rate(rates, KEY, 1, 30.0)
    assert (caught.value.rule, caught.value.detail) == ("limits.rate", "user usr_dana is over 1 a minute")
    assert 1 <= caught.value.retry_after <= 91


@given(st.integers(1, 50), st.lists(st.floats(0, 7), min_size=1, max_size=300))
def test_a_minute_holds_at_most_twice_the_limit_and_retry_after_is_honest(limit: int, gaps: list[float]) -> None:
    """Whatever the pattern: who waits as long as told is served."""
    rates = Rates(10)
    now, served = 0.0, list[float]()
    for gap in gaps:
        now += gap
        wait = rates.count(KEY, limit, now)
        if wait:
            now += wait
            assert rates.count(KEY, limit, now) == 0
        served.append(now)
    for start in served:
        assert sum(start <= at < start + 60 for at in served) <= 2 * limit


def test_a_quiet_minute_forgets() -> None:
    """Two minutes later nothing counts."""
    rates = Rates(10)
    for _ in range(5):
        rates.count(KEY, 5, 0)
    assert rates.count(KEY, 5, 130) == 0
    assert [rates.count(KEY, 5, 130) for _ in range(4)] == [0] * 4


def test_the_counters_are_bounded() -> None:
    """The one unused longest goes first."""
    rates = Rates(2)
    for name in ("a", "b", "a", "c"):
        rates.count((name,), 2, 0)
    assert rates.count(("a",), 2, 0) > 0
    assert rates.count(("b",), 2, 0) == 0


def test_a_counter_that_refuses_is_not_forgotten_first() -> None:
    """Whoever is over the limit and goes on asking stays over it, however many others come."""
    rates = Rates(2)
    for _ in range(2):
        rates.count(("attacker",), 1, 0)
    for n in range(10):
        rates.count((str(n),), 1, 0)
        assert rates.count(("attacker",), 1, 0) > 0


@pytest.mark.parametrize(
    ("peer", "network"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::1", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("", "no address"),
        ("unix", "no address"),
        ("x" * 60_000, "no address"),
    ],
)
def test_what_an_address_counts_as(peer: str, network: str) -> None:
    """One subscriber has a whole /64 of IPv6."""
    assert network_of(peer) == network


@pytest.mark.parametrize(
    ("peer", "alone"),
    [
        ("192.0.2.7", True),
        ("2001:db8::1", True),
        ("::ffff:198.51.100.1", True),
        ("127.0.0.1", False),
        ("::1", False),
        ("10.1.2.3", False),
        ("::ffff:172.18.0.1", False),
        ("192.168.0.1", False),
        ("fd00::1", False),
        ("unix", False),
    ],
)
def test_whoever_may_be_our_own_proxy_stands_for_many(peer: str, alone: bool) -> None:
    """One stranger behind it must not keep all others out."""
    assert is_of_one_party(network_of(peer)) is alone
