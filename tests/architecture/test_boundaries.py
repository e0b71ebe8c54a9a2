"""What import contracts cannot see: clocks by attribute, versions by literal, proof by construction, rules by id."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from papaver.testing.rules import ROOMS_WITH_RULES, load_rules, switched_off
from tests.architecture.source import CORE, core_modules, modules, tree

CLOCKS = {"now", "utcnow", "today", "time", "monotonic", "perf_counter", "time_ns", "monotonic_ns"}
CLOCK_OWNERS = {"datetime", "date", "time"}
VERSION = "0.4"
RULE_ID = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*\.[a-z0-9]+(?:-[a-z0-9]+)*")


def _calls(module: Path) -> Iterator[tuple[ast.Call, str, str]]:
    """Every call of a module, with the name that is called and the name before its dot."""
    for node in ast.walk(tree(module)):
        if not isinstance(node, ast.Call):
            continue
        owner = node.func.value if isinstance(node.func, ast.Attribute) else None
        before = owner.attr if isinstance(owner, ast.Attribute) else owner.id if isinstance(owner, ast.Name) else ""
        yield node, _called(node), before


def _may_name_a_version(module: Path) -> set[int]:
    """The ids of the constants in docstrings, and in the defaults of the configuration (`DEFAULT_… = …`)."""
    allowed: set[int] = set()
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            allowed.add(id(node.value))
    for node in tree(module).body:
        targets = node.targets if isinstance(node, ast.Assign) else []
        if any(isinstance(target, ast.Name) and target.id.startswith("DEFAULT_") for target in targets):
            allowed.update(id(inner) for inner in ast.walk(node))
    return allowed


def test_the_core_reads_no_clock() -> None:
    """`now` is an argument everywhere below the two parties (rule 1)."""
    readings = [
        f"{module}:{call.lineno}: {owner}.{name}()"
        for module in core_modules()
        for call, name, owner in _calls(module)
        if name in CLOCKS and owner in CLOCK_OWNERS
    ]
    assert readings == []


def test_a_version_is_named_only_in_its_folder_and_in_configuration() -> None:
    """Everyone else is handed a dialect (rule 6)."""
    literals: list[str] = []
    for module in modules():
        if module.parts[0] == "versions":
            continue
        allowed = _may_name_a_version(module)
        constants = (node for node in ast.walk(tree(module)) if isinstance(node, ast.Constant))
        literals += [
            f"{module}:{node.lineno}"
            for node in constants
            if node.value in (VERSION, float(VERSION)) and id(node) not in allowed
        ]
    assert literals == []


def test_a_verified_session_is_built_in_one_module() -> None:
    """Verified is a type, and one module of the protocol is its only maker (rule 4)."""
    makers = {module.as_posix() for module in modules() for _, name, _ in _calls(module) if name == "VerifiedSession"}
    assert len(makers) == 1
    assert makers.pop().startswith("protocol/session")


def test_rule_ids_are_an_area_and_a_behaviour() -> None:
    """`session.aud-is-company`: two parts of lower-case words, wherever one is registered or raised."""
    odd: list[str] = []
    for module in modules():
        for call, name, _ in _calls(module):
            values = [keyword.value for keyword in call.keywords if keyword.arg == "rule"]
            values += call.args[:1] if name == "rule" else []
            for value in values:
                text = value.value if isinstance(value, ast.Constant) else None
                if isinstance(text, str) and text and not RULE_ID.fullmatch(text):
                    odd.append(f"{module}:{call.lineno}: {text}")
    assert odd == []


def test_every_check_function_has_a_rule_id() -> None:
    """A `check_…` of the core is one clause with its id, or only calls checks that are (rule 2)."""
    nameless = [
        f"{module}:{node.lineno}: {node.name}"
        for module in modules()
        if module.parts[0] in CORE
        for node in tree(module).body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("check_")
        if not _has_rule(node) and not _calls_checks(node)
    ]
    assert nameless == []


def _has_rule(function: ast.FunctionDef) -> bool:
    return any(isinstance(node, ast.Call) and _called(node) == "rule" for node in function.decorator_list)


def _calls_checks(function: ast.FunctionDef) -> bool:
    return any(isinstance(node, ast.Call) and _called(node).startswith("check_") for node in ast.walk(function))


def _called(call: ast.Call) -> str:
    function = call.func
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def test_rules_live_only_where_they_are_looked_for() -> None:
    """The rooms that the tracer imports are all that register a check, and each check can be switched off."""
    elsewhere = [
        str(module)
        for module in modules()
        if module.parts[0] not in ROOMS_WITH_RULES
        for node in tree(module).body
        if isinstance(node, ast.FunctionDef) and _has_rule(node)
    ]
    assert elsewhere == []
    with switched_off(*load_rules()):
        assert load_rules()
