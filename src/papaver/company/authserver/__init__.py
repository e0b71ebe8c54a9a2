"""The embedded issuer: an authorization server for Personal Agents, inside the Company's own app (3.2, section 4)."""

from papaver.company.authserver.interactions import InteractionOver
from papaver.company.authserver.issuer import EmbeddedIssuer
from papaver.company.authserver.settings import IssuerLimits

__all__ = ["EmbeddedIssuer", "InteractionOver", "IssuerLimits"]
