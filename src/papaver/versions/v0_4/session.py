"""The Session header of draft 0.4: its names on the wire, and its checks in the order of 5.2 and 5.3."""

from __future__ import annotations

from typing import Final

from papaver.protocol.delegation import DelegationProfile
from papaver.protocol.session import Check, SessionProfile
from papaver.protocol.session_checks import (
    check_aud,
    check_claims_present,
    check_htm,
    check_htu,
    check_iat,
    check_ids_bounded,
    check_sid,
)

__all__ = ["CHECKS", "SESSION"]

CHECKS: Final[tuple[Check, ...]] = (
    check_claims_present,
    check_sid,
    check_ids_bounded,
    check_aud,
    check_htm,
    check_htu,
    check_iat,
)
"""The form of the claims, then `aud`, `htm`, `htu` and `iat` (5.3, step 2; readings 5)."""

SESSION: Final = SessionProfile(
    header="Poppy-Session",
    typ="poppy-session+jwt",
    delegation_member="poppy_dlg",
    delegation=DelegationProfile(typ="poppy-delegation+jwt"),
    checks=CHECKS,
)
