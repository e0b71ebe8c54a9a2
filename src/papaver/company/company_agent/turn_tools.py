"""The tools as one turn may use them: what is offered, what is allowed, and each call's way to its end.

known? ─► arguments ─► scopes ─► policy and the Company's say ─► run, once ─► told in text and `data.actions`
             │            └── ScopesNeeded: the turn ends in one `authorization` event (8.11)
             └── ToolError, in words for whoever called
"""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import logging
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import msgspec

from papaver.company.account import ScopesNeeded
from papaver.company.company_agent.actions import ActionFailed, ActionOutcome, ActionPolicy, ActionRejected
from papaver.company.company_agent.actors import Actor
from papaver.company.company_agent.acts import ACTION, Acts
from papaver.company.company_agent.arguments import ToolError
from papaver.company.company_agent.proposals import Proposed
from papaver.company.company_agent.questions import ASKED, SKIPPED, Question, worded
from papaver.company.company_agent.tools import Confirmation, Tool, ToolCall
from papaver.protocol.conversation.operations import LeaseLost
from papaver.protocol.terms import AccountId
from papaver.values import strict_json
from papaver.values.rules import rule
from papaver.values.strict_json import JsonError

if TYPE_CHECKING:
    from papaver.company.turn import Turn

__all__ = ["ToolBroken", "TurnTools", "check_offered", "check_turn_goes_on"]

log = logging.getLogger("papaver.company.agent")

REJECTED: Final = (
    "This was not run, and nothing was changed. The Company decided so; it is no fault, and trying again ends the "
    "same. Say that it is not done here, and give no other reason."
)
BROKEN: Final = "The tool failed, so nothing is known from it. Say so; do not guess what it would have said."


class ToolBroken(ToolError):
    """A reading tool failed; why is logged."""

    code = "tool_broken"


@rule("tool.offered")
def check_offered(name: str, tool: Tool | None, actor: Actor) -> None:
    """What was not declared for this actor is not there, also when a model names it. Raises ToolError."""
    if tool is None or not tool.offered(actor):
        raise ToolError(f"there is no tool called {name!r:.80}", rule="tool.offered")


@rule("turn.goes-on")
def check_turn_goes_on(turn: Turn, needed: tuple[str, ...]) -> None:
    """Once a call was refused the turn is over: nothing else is done whose end nobody would be told. 8.11."""
    if needed:
        turn.require(*needed)


class TurnTools:
    """`turn.tools`."""

    def __init__(self, turn: Turn, acts: Acts) -> None:
        self._turn, self._acts, self._agent = turn, acts, acts.agent

    def offered(self) -> tuple[Tool, ...]:
        """What an agent may learn of: also a tool whose scopes are missing, because calling it asks for them."""
        return tuple(tool for tool in self._agent.tools.values() if tool.offered(self._acts.acting))

    def allowed(self) -> tuple[Tool, ...]:
        """What the User's token covers now."""
        return tuple(tool for tool in self._agent.tools.values() if tool.allowed(self._acts.acting))

    def check(self, *calls: tuple[str, Mapping[str, object] | str]) -> None:
        """Before several calls are made, of which none is to run when one would be refused.

        Raises ScopesNeeded with all that the refused ones need. What is wrong otherwise is said when it is called.
        """
        for name, arguments in calls:
            with suppress(ToolError, ScopesNeeded):
                tool = self._find(name)
                tool.arguments.read(arguments)
                if tool.scopes:
                    self._turn.require(*tool.scopes)
        check_turn_goes_on(self._turn, self._acts.account.needed)

    async def call(self, name: str, arguments: Mapping[str, object] | str | None = None) -> Any:
        """The result, as JSON values. `arguments` is an object, or its JSON text.

        Raises ScopesNeeded, which ends the turn (let it pass), and ToolError: for an unknown tool, wrong arguments,
        a tool that failed, and an action that was rejected (ActionRejected) or failed (ActionFailed). Its description
        is fit for a model. An action is told in the reply, whatever is made of the result. Whether the User's token is
        still good is asked before each call (readings 26); where that cannot be told: TemporarilyUnavailable.
        """
        await self._acts.recheck()
        tool = self._find(name)
        read = tool.arguments.read({} if arguments is None else arguments)
        account = self._turn.require(*tool.scopes) if tool.scopes else None
        check_turn_goes_on(self._turn, self._acts.account.needed)
        if tool.action:
            return await self._act(tool, read, account)
        try:
            return _plain(await self._invoke(tool, self._called(tool, read, account, f"{self._turn.id}:{name}")))
        except (ToolError, ScopesNeeded, LeaseLost):
            raise
        except Exception as error:
            log.error("turn %s: the tool %s failed", self._turn.id, name, exc_info=error)
            raise ToolBroken(BROKEN, detail=repr(error)) from error

    async def ask(self, *questions: Question | str) -> str:
        """Ask what a person should answer, as `on_question` says; returns what an agent is told of that."""
        asked = [Question(one) if isinstance(one, str) else one for one in questions]
        if not asked or self._agent.on_question == "skip":
            return SKIPPED
        if self._agent.on_question == "request_user" and not self._turn.direct:
            self._turn.request_user(worded(asked))
        else:
            self._acts.questions += asked
        return ASKED

    def _find(self, name: str) -> Tool:
        tool = self._agent.tools.get(name)
        check_offered(name, tool, self._acts.acting)
        assert tool is not None
        return tool

    def _called(self, tool: Tool, arguments: Mapping[str, Any], account: AccountId | None, key: str) -> ToolCall:
        actor, memory = self._acts.acting, self._agent.memory
        return ToolCall(
            self._turn,
            tool,
            key,
            arguments,
            actor,
            account,
            memory.memory_scopes(actor),
            memory.skill_scopes(actor),
        )

    async def _act(self, tool: Tool, arguments: Mapping[str, Any], account: AccountId | None) -> Any:
        """One action, once: the same call in a run after a crash, or after the User signed in, is not made again."""
        key = hashlib.sha256(strict_json.canonical([tool.name, msgspec.to_builtins(arguments)])).hexdigest()[:24]
        done = (await self._acts.done_before()).get(key, [])
        nth = self._acts.calls[key]
        self._acts.calls[key] += 1
        if nth < len(done) and done[nth].certain:
            return done[nth].result
        name = f"{ACTION}{tool.name}:{key}:{nth}"
        call = self._called(tool, arguments, account, f"{self._asked_by}:{tool.name}:{key}:{nth}")
        summary = self._summary(tool, arguments)
        unfinished = self._unfinished(tool, summary, key)
        if nth < len(done):  # it was cut off: told again as not certain, and run again for a new message alone
            self._acts.actions[name] = unfinished
        else:
            await self._acts.act(name, unfinished, lambda: self._outcome(tool, call, summary, key))
        ended = self._acts.actions[name]
        if ended.status == "rejected":
            raise ActionRejected(REJECTED)
        if ended.status == "failed":
            raise ActionFailed(f"This did not work: {ended.error}")
        return ended.result

    async def _outcome(self, tool: Tool, call: ToolCall, summary: Confirmation, key: str) -> ActionOutcome:
        """Decide about an action and run it. What goes wrong in the Company's code is its end, and is logged."""
        texts = self._acts.texts
        try:
            refused = await self._refused(call)
            if refused is not None:
                return ActionOutcome(tool.name, "rejected", summary, error=refused or texts.action_refused, key=key)
            value = await self._invoke(tool, call)
            return ActionOutcome(tool.name, "succeeded", summary, self._result(tool, value), key=key)
        except (ActionFailed, ActionRejected, ToolBroken) as error:  # of a tool that it called: in words for a model
            log.error("turn %s: the action %s failed", self._turn.id, tool.name, exc_info=error)
            return ActionOutcome(tool.name, "failed", summary, error=texts.action_error, key=key)
        except ToolError as error:
            said = error.description.encode("utf-8", "replace").decode()
            return ActionOutcome(tool.name, "failed", summary, error=said, key=key)
        except TimeoutError as error:
            log.error("turn %s: the action %s has not ended in time", self._turn.id, tool.name, exc_info=error)
            return self._unfinished(tool, summary, key)
        except (ScopesNeeded, LeaseLost):  # a tool may ask for more of the account than it declared
            raise
        except Exception as error:
            log.error("turn %s: the action %s failed", self._turn.id, tool.name, exc_info=error)
            return ActionOutcome(tool.name, "failed", summary, error=texts.action_error, key=key)

    def _unfinished(self, tool: Tool, summary: Confirmation, key: str) -> ActionOutcome:
        """An action that may have been done."""
        said = self._acts.texts.action_unfinished
        return ActionOutcome(tool.name, "failed", summary, error=said, key=key, certain=False)

    async def _refused(self, call: ToolCall) -> str | None:
        """Why the action does not run; None when it does. "" is why without words."""
        if self._agent.actions is ActionPolicy.REJECT:
            return ""
        if self._agent.authorize_action is None:
            return None
        said = self._agent.authorize_action(self._turn, call)
        said = await said if inspect.isawaitable(said) else said
        if said is True:
            return None
        return said if isinstance(said, str) else ""

    async def _invoke(self, tool: Tool, call: ToolCall) -> Any:
        """Run its function; what it has proposed is decided, and its end awaited."""
        value = await tool.function(call, **call.arguments)
        if isinstance(value, Proposed):
            value = await self._carried_out(value, call)
        return value

    def _result(self, tool: Tool, value: object) -> object:
        """What an action returned. It is done, also when that cannot be told."""
        try:
            return _plain(value)
        except (TypeError, JsonError) as error:
            log.error("turn %s: the result of %s is no JSON value", self._turn.id, tool.name, exc_info=error)
            return None

    async def _carried_out(self, proposed: Proposed, call: ToolCall) -> object:
        proposals = self._agent.proposals
        if proposals is None:
            raise TypeError(f"the tool {call.tool.name} proposes, and CompanyAgent(proposals=…) is not given")
        await proposals.decide(proposed.id, True, call.actor)
        async with asyncio.timeout(self._acts.seconds):
            return await proposals.wait(proposed.id)

    @property
    def _asked_by(self) -> str:
        """What was asked for: the same for the turn that runs after this one was parked or superseded."""
        turn = self._turn
        return f"{turn.conversation_id}:{turn.messages[0].id}" if turn.messages else turn.id

    def _summary(self, tool: Tool, arguments: Mapping[str, Any]) -> Confirmation:
        """What is about to be done, in words. One that cannot be worded is still done, by its name."""
        try:
            summary = tool.confirm(arguments)
            strict_json.dumps([summary.title, summary.detail])
            return summary
        except Exception as error:
            log.error("turn %s: the confirmation of %s failed", self._turn.id, tool.name, exc_info=error)
            return Confirmation(tool.name)


def _plain(value: object) -> Any:
    """As JSON values. Raises TypeError or JsonError."""
    plain = msgspec.to_builtins(value)
    strict_json.dumps(plain)
    return plain
