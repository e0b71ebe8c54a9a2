"""The Personal Agent of this machine's home folder, as the commands of that role use it."""

from __future__ import annotations

from papaver.adapters.httpx2.personal_agent import PersonalAgent
from papaver.adapters.keyfile import KeyFile
from papaver.cli.run import Run
from papaver.personal_agent.settings import AgentLimits
from papaver.stores.memory_vault import MemoryVault
from papaver.stores.sqlite.vault import SqliteVault

__all__ = ["agent_of", "agent_or_nobody"]

NOBODY = "https://agent.invalid/agent.json"
"""Who discovers without a home. Discovery carries no credential, so no Company sees it."""


LIMITS = AgentLimits()
"""What a person in front of a terminal is made to wait for."""


def agent_of(run: Run) -> PersonalAgent:
    """The Personal Agent of the home. Raises CliError when nobody made one yet."""
    profile = run.home.profile()
    return PersonalAgent(
        profile.client_id,
        keys=run.home.keys,
        vault=SqliteVault(run.home.vault),
        network=run.network,
        name=profile.name,
        redirect_uris=profile.redirect_uris,
        limits=LIMITS,
    )


def agent_or_nobody(run: Run) -> PersonalAgent:
    """The same, or one that leaves nothing behind when the home has none: enough to discover."""
    if run.home.is_begun:
        return agent_of(run)
    return PersonalAgent(NOBODY, keys=KeyFile(run.home.folder / "keys.json"), vault=MemoryVault(), network=run.network)
