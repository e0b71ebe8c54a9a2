"""What a guard of an app's route has to name, whichever framework the route is in."""

from __future__ import annotations

from collections.abc import Sequence

from papaver.company.app import Company
from papaver.protocol.errors import ConfigurationError
from papaver.values.rules import rule

__all__ = ["check_signed_in"]


@rule("configuration.signed-in")
def check_signed_in(company: Company, scopes: Sequence[str]) -> None:
    """Who asks for an account says for which scopes, because the challenge has to, and has an issuer (3.2, 7)."""
    if company.sign_in is None or not scopes:
        raise ConfigurationError(
            f"signed_in({', '.join(map(repr, scopes))}) at {company.offer.name}: it takes at least one scope, and a "
            "Company with sign_in=",
            rule="configuration.signed-in",
        )
