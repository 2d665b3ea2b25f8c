"""What errors are read from: modules of the sources, their functions, and what a name stands for there.

Rules: sources are read and never imported. What cannot be told from them is a gap with a name.
"""

from __future__ import annotations

import ast
import itertools
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

OPEN, CLOSE = "\u2039", "\u203a"  # angle quotes, which Markdown leaves alone

#: Methods whose result is called as what they are of, and the beginnings of those that name no result.
_SHAPED = ("decode", "isoformat", "lower", "rstrip", "simpleString", "strip", "upper")
_TELL_NOTHING = ("ask", "get", "join", "seek", "set", "tell")

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, kw_only=True)
class Module:
    """One file of the sources; ``name`` is dotted."""

    name: str
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        """What Python reads it as."""
        return ast.parse(self.text)

    @cached_property
    def values(self) -> dict[str, ast.expr]:
        """Names of the module itself that are bound to an expression."""
        found: dict[str, ast.expr] = {}
        for node in self.tree.body:
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                found[node.targets[0].id] = node.value
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value:
                found[node.target.id] = node.value
        return found

    @cached_property
    def functions(self) -> list[Function]:
        """All functions and methods."""
        return [node for node in self._nodes if isinstance(node, Function)]

    @cached_property
    def imported(self) -> dict[str, tuple[str, str]]:
        """Names that come from another module: its name, and what it is called there."""
        imports = (node for node in self._nodes if isinstance(node, ast.ImportFrom))
        aliases = ((node.module or "", alias) for node in imports for alias in node.names)
        return {alias.asname or alias.name: (module, alias.name) for module, alias in aliases}

    @cached_property
    def _nodes(self) -> list[ast.AST]:
        return list(ast.walk(self.tree))

    def table(self, node: ast.Subscript) -> dict[ast.expr, ast.expr]:
        """The rows of the dictionary that ``node`` looks something up in; none, if it is no such name."""
        value = self.values.get(ast.unparse(node.value))
        if not isinstance(value, ast.Dict):
            return {}
        return {key: row for key, row in zip(value.keys, value.values, strict=True) if key is not None}


@dataclass(frozen=True, kw_only=True)
class Scope:
    """Where an expression stands.

    Attributes:
        module: with the expression.
        function: around it, or ``None``.
        given: texts that names stand for, such as arguments.
        decided: tests that are known to hold, or not to.
        caller: the name of the module that calls the function, if it is known.
    """

    module: Module
    function: Function | None = None
    given: Mapping[str, list[str]] = field(default_factory=dict)
    decided: Mapping[str, bool] = field(default_factory=dict)
    caller: str = ""

    @property
    def maker(self) -> str:
        """The name of the module that makes an error here."""
        return self.caller or self.module.name

    def calls(self) -> Iterator[ast.Call]:
        """The calls of the function, or of the module outside of its functions."""
        todo: list[ast.AST] = list(ast.iter_child_nodes(self.function or self.module.tree))
        while todo:
            node = todo.pop()
            if isinstance(node, ast.Call):
                yield node
            if not isinstance(node, Function):
                todo.extend(ast.iter_child_nodes(node))

    def decisions(self) -> Iterator[dict[str, bool]]:
        """How the tests may come out that the function makes twice, so that their choices go together."""
        nodes = ast.walk(self.function) if self.function is not None else ()
        tests = Counter(ast.unparse(node.test) for node in nodes if isinstance(node, ast.IfExp))
        twice = [test for test, times in tests.items() if times > 1]
        for outcomes in itertools.product([True, False], repeat=len(twice)):
            yield dict(zip(twice, outcomes, strict=True))

    def bound(self, name: str, at: ast.AST) -> list[ast.expr]:
        """What ``name`` is bound to where ``at`` stands: the last of its block, else all that come before."""
        found: list[tuple[bool, ast.expr]] = []
        for block in _blocks(self.function):
            around = any(_holds(statement, at) for statement in block)
            for target, value in (each for statement in block for each in _assignments(statement)):
                before = value.lineno <= getattr(at, "lineno", 0) and not _holds(value, at)
                if target == name and before:
                    found.append((around, value))
        return [value for around, value in found if around][-1:] or [value for _, value in found]


def parameters(function: Function | None) -> list[str]:
    """The names of the arguments, without ``self``."""
    if function is None:
        return []
    names = [argument.arg for argument in (*function.args.args, *function.args.kwonlyargs)]
    return names[1:] if names[:1] == ["self"] else names


def gap(node: ast.expr) -> str:
    """A gap with the name of what stands there, if it has a telling one."""
    return f"{OPEN}{_telling(node)}{CLOSE}"


def _telling(node: ast.expr) -> str:
    match node:
        case ast.Attribute(attr="__name__" | "__qualname__"):
            name = "class"
        case ast.Attribute(attr=name) | ast.Name(id=name):
            pass
        case ast.BinOp(left=inner) | ast.Subscript(value=inner):
            name = _telling(inner)
        case ast.Call(func=ast.Name(id="len")):
            name = "n"
        case ast.Call(args=[ast.Name() | ast.Attribute() | ast.Call() as inner], keywords=[]):
            name = _telling(inner)
        case ast.Call(func=ast.Attribute(value=inner, attr=name)) if name in _SHAPED:
            name = _telling(inner)
        case ast.Call(func=ast.Attribute(attr=name)) if not name.startswith(_TELL_NOTHING):
            pass
        case _:
            name = "…"
    return re.sub(r"(?<=[a-z])(?=[A-Z])|_", " ", name.strip("_")).lower()


def _blocks(function: Function | None) -> Iterator[list[ast.stmt]]:
    for node in ast.walk(function) if function is not None else ():
        if node is function or not isinstance(node, Function):
            blocks = (getattr(node, name, None) for name in ("body", "orelse", "finalbody"))
            yield from (block for block in blocks if isinstance(block, list))


def _holds(node: ast.stmt | ast.expr, inner: ast.AST) -> bool:
    """Whether ``inner`` is ``node`` or in it, by where both stand."""
    begin, end = getattr(inner, "lineno", 0), getattr(inner, "end_lineno", 0)
    if (node.lineno, node.end_lineno) == (begin, end):
        return node.col_offset <= getattr(inner, "col_offset", 0)
    return node.lineno <= begin and end <= (node.end_lineno or 0)


def _assignments(statement: ast.stmt) -> Iterator[tuple[str, ast.expr]]:
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            yield name, value
        case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Tuple(elts=values)):
            pairs = zip(names, values, strict=False)
            yield from ((name.id, value) for name, value in pairs if isinstance(name, ast.Name))
