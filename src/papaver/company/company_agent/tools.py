"""The tools of a Company Agent: each says who reaches it, what it takes, and whether it changes something."""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar, cast

from papaver.company.company_agent.actors import SCOPE, Actor
from papaver.company.company_agent.arguments import Arguments, arguments_of
from papaver.company.scopes import Scope
from papaver.oauth.scopes import read_scope
from papaver.protocol.errors import ConfigurationError
from papaver.protocol.terms import AccountId
from papaver.values.rules import rule

if TYPE_CHECKING:
    from papaver.company.turn import Turn

__all__ = [
    "Confirmation",
    "Tool",
    "ToolCall",
    "Tools",
    "check_reach",
    "check_scopes_offered",
    "check_tool_async",
    "check_tool_name",
    "check_tools_distinct",
    "idle_hints",
]

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")


@dataclass(frozen=True, slots=True)
class Confirmation:
    """What a person would have been asked to confirm: `title` says what is done, `detail` with what."""

    title: str
    detail: str | None = None


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call of a tool.

    `key`         the idempotency key of an action: the same however often a crash makes the turn start again, and for
                  the turn that runs after the User has signed in
    `arguments`   as they were checked
    `account_id`  the account whose token covers the tool's scopes; None for a tool that needs none
    `memory`, `skills`  the names under which this actor remembers, and those of its skills: none for most
    """

    turn: Turn
    tool: Tool
    key: str
    arguments: Mapping[str, Any]
    actor: Actor
    account_id: AccountId | None
    memory: tuple[str, ...] = ()
    skills: tuple[str, ...] = ()


class Function(Protocol):
    """An async function whose first parameter is the call."""

    def __call__(self, call: ToolCall, /, *arguments: Any, **named: Any) -> Awaitable[object]: ...


F = TypeVar("F", bound=Callable[..., Awaitable[object]])


@dataclass(frozen=True, slots=True)
class Tool:
    """`scopes`  all of them are needed    `roles`  one of them is needed    `public`  open to everybody, signed out too

    `action`  it changes something
    """

    name: str
    description: str
    arguments: Arguments
    function: Function = field(repr=False)
    scopes: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()
    public: bool = False
    action: bool = False
    confirmation: Callable[[Mapping[str, Any]], Confirmation] | None = field(default=None, repr=False)

    def offered(self, actor: Actor) -> bool:
        """Whether an agent that acts as `actor` may learn of it: a scope that is missing can still be asked for."""
        if self.roles:
            return not set(self.roles).isdisjoint(actor.roles)
        return self.public or bool(self.scopes)

    def allowed(self, actor: Actor) -> bool:
        """Whether it may be called now."""
        return self.offered(actor) and {SCOPE + scope for scope in self.scopes} <= set(actor.roles)

    def confirm(self, arguments: Mapping[str, Any]) -> Confirmation:
        """What a call of it does, in words: the tool's own, else its name."""
        if self.confirmation is not None:
            return self.confirmation(arguments)
        return Confirmation(self.name.replace("_", " ").strip().capitalize())


class Tools(Mapping[str, Tool]):
    """The registry: what is not in it cannot be called, whoever names it.

        tools = Tools()

        @tools.tool(scopes={"orders:write"}, action=True)
        async def exchange(call: ToolCall, number: int, size: str) -> str: ...

    Given to `Company(company_agent=CompanyAgent(tools))`, which checks that its scopes are offered.
    """

    def __init__(self) -> None:
        self._tools: dict[str, Tool] = {}

    def tool(
        self,
        *,
        scopes: Collection[str] = (),
        roles: Collection[str] = (),
        public: bool = False,
        action: bool = False,
        name: str | None = None,
        description: str | None = None,
        confirmation: Callable[[Mapping[str, Any]], Confirmation] | None = None,
        schema: Mapping[str, object] | None = None,
    ) -> Callable[[F], F]:
        """Decorates an async function. Its docstring is the description, its annotations say what it takes.

        Who reaches it is said: `public=True`, scopes that the User's token has to cover, or roles of the actor.
        `confirmation` words an action by its arguments. Raises ConfigurationError.
        """

        def register(function: F) -> F:
            called = name or getattr(function, "__name__", "")
            check_tool_name(called)
            check_tools_distinct(called, self._tools)
            check_reach(called, scopes, roles, public)
            check_tool_async(called, function)
            self._tools[called] = Tool(
                called,
                (description or function.__doc__ or "").strip(),
                arguments_of(function, schema),
                function,
                read_scope(" ".join(sorted(scopes))) if scopes else (),
                tuple(sorted(roles)),
                public,
                action,
                confirmation,
            )
            return function

        return register

    def __getitem__(self, name: str) -> Tool:
        return self._tools[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tools)

    def __len__(self) -> int:
        return len(self._tools)


@rule("tool.name")
def check_tool_name(name: str) -> None:
    """A name that every model can say. Raises ConfigurationError."""
    if _NAME.fullmatch(name) is None:
        raise ConfigurationError(
            f"a tool is called {name!r}, expected up to 64 letters, digits and '_', such as find_order",
            rule="tool.name",
        )


@rule("tool.async")
def check_tool_async(name: str, function: object) -> None:
    """One that is not would stop every other turn while it works. Raises ConfigurationError."""
    if not inspect.iscoroutinefunction(inspect.unwrap(cast("Callable[..., object]", function))):
        raise ConfigurationError(
            f"the tool {name} is not async, expected a function such as `async def {name}(call, number: int)`",
            rule="tool.async",
        )


@rule("tool.distinct")
def check_tools_distinct(name: str, present: Collection[str]) -> None:
    """One name, one tool. Raises ConfigurationError."""
    if name in present:
        raise ConfigurationError(f"two tools are called {name}; name one of them otherwise", rule="tool.distinct")


@rule("tool.reach")
def check_reach(name: str, scopes: Collection[str], roles: Collection[str], public: bool) -> None:
    """Nothing is open because somebody forgot to close it: a tool says who reaches it. Raises ConfigurationError."""
    if isinstance(scopes, str) or isinstance(roles, str):
        raise ConfigurationError(
            f"the tool {name} names its scopes or roles as one text; expected a set such as {{'orders:read'}}",
            rule="tool.reach",
        )
    if public == bool(scopes or roles):
        raise ConfigurationError(
            f"the tool {name} has to say who reaches it: scopes={{…}}, roles={{…}}, or public=True and neither of them",
            rule="tool.reach",
        )
    for role in roles:
        if role.startswith(SCOPE):
            raise ConfigurationError(
                f"the tool {name} names the role {role!r}; say scopes={{{role.removeprefix(SCOPE)!r}}}, so that it can "
                "be asked for",
                rule="tool.reach",
            )


@rule("tool.scopes-offered")
def check_scopes_offered(tools: Mapping[str, Tool], scopes: Sequence[Scope]) -> None:
    """4.7: what a tool needs can be granted. Raises ConfigurationError."""
    offered = {scope.name for scope in scopes}
    for tool in tools.values():
        for scope in tool.scopes:
            if scope not in offered:
                raise ConfigurationError(
                    f"the tool {tool.name} needs the scope {scope!r}, which the Company does not offer; add "
                    f"Scope({scope!r}, …) to scopes",
                    rule="tool.scopes-offered",
                )


def idle_hints(tools: Mapping[str, Tool], scopes: Sequence[Scope]) -> list[str]:
    """Actions that need only scopes whose hint says that they change nothing (4.7)."""
    changes = {scope.name: scope.changes for scope in scopes}
    return [
        tool.name
        for tool in tools.values()
        if tool.action and tool.scopes and all(changes.get(scope) == "none" for scope in tool.scopes)
    ]
