"""The sample about sign-in does what its page says."""

from __future__ import annotations

import pytest

from docs_src import agent_sign_in
from papaver.personal_agent.sign_in import DeviceSignIn, DirectSignIn
from tests.interaction.test_pair_sign_in import shop

pytestmark = pytest.mark.anyio


async def test_an_order_is_found_after_the_user_has_signed_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """The User is asked once, in their own words' interface, and the answer comes in the same conversation."""
    async with shop() as world:

        async def ask(sign_in: DirectSignIn | DeviceSignIn) -> None:
            assert isinstance(sign_in, DirectSignIn)
            callback = await world.dana.approve(sign_in.url)

            def pasted(_: str) -> str:
                return callback

            with monkeypatch.context() as patched:
                patched.setattr("builtins.input", pasted)
                await asked(sign_in)

        asked = agent_sign_in.ask_the_user
        monkeypatch.setattr(agent_sign_in, "ask_the_user", ask)
        said = await agent_sign_in.where_is_my_order(world.session)
        assert said == ["Where is my order?", "Shipped, acct_dana."]
        assert await world.session.scopes() == ("orders:read",)
