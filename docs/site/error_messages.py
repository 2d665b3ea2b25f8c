"""Every error that the sources make: its class, its code, and its sentence with gaps for what varies.

A sentence that depends on a choice is told once for each choice. An error that a function makes of a code
that it is given is told where the function is called.
"""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from error_sources import OPEN, Module, Scope, gap, parameters

#: What takes a code to where the error is made: the class of that, and the beginning of its sentence.
_CARRIERS = {"Refusal": ("BucketError", "a bucket id ")}
_MOST_CHOICES = 6
_CODE = re.compile(r"[A-Z][A-Z_]+")
_INCOMPLETE = re.compile(r"''|  |\bNone\b")


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Made:
    """One error of the sources; ``module`` is where it is made."""

    kind: str
    code: str
    message: str
    module: str


@dataclass(frozen=True, kw_only=True)
class _Call:
    """A call with a code: whom it calls, or what that makes, and the expressions of code and sentence."""

    node: ast.Call
    kinds: list[str]
    code: ast.expr
    message: ast.expr
    begin: str = ""


class Sources:
    """The packages at ``roots``, the first of which has the classes of errors."""

    def __init__(self, roots: Sequence[Path]) -> None:
        files = [(root.parent, file) for root in roots for file in sorted(root.rglob("*.py"))]
        names = [".".join(file.relative_to(base).with_suffix("").parts) for base, file in files]
        texts = [file.read_text() for _, file in files]
        self._modules = {name: Module(name=name, text=text) for name, text in zip(names, texts, strict=True)}
        classes = self._modules["filesink.errors"].tree.body
        #: What each class means, by its name, in the order of the file.
        self.kinds = {
            node.name: (ast.get_docstring(node) or "").partition("\n\n")[0]
            for node in classes
            if isinstance(node, ast.ClassDef)
        }

    def errors(self) -> list[Made]:
        """All of them, sorted."""
        modules = [module for module in self._modules.values() if module.name != "filesink.errors"]
        scopes = [
            Scope(module=module, function=function)
            for module in modules
            for function in (None, *module.functions)
        ]
        return sorted({error for scope in scopes for error in self._in(scope)})

    def _in(self, scope: Scope) -> Iterator[Made]:
        for node in scope.calls():
            arguments = {keyword.arg: keyword.value for keyword in node.keywords if keyword.arg}
            call = self._with_code(node, arguments, scope)
            if call is not None:
                yield from self._made(call, scope)
            elif maker := self._maker(node.func, scope):
                bound = dict(zip(parameters(maker.function), node.args, strict=False)) | arguments
                given = {name: self._texts(value, scope, node) for name, value in bound.items()}
                yield from self._in(replace(maker, given=given, caller=scope.maker))

    def _with_code(self, node: ast.Call, arguments: dict[str, ast.expr], scope: Scope) -> _Call | None:
        if "code" not in arguments:
            return None
        code, name = arguments["code"], ast.unparse(node.func)
        if name in _CARRIERS and "why" in arguments:
            kind, begin = _CARRIERS[name]
            return _Call(node=node, kinds=[kind], code=code, message=arguments["why"], begin=begin)
        kinds = self._kinds(node.func, scope, node)
        return _Call(node=node, kinds=kinds, code=code, message=node.args[0]) if kinds and node.args else None

    def _made(self, call: _Call, scope: Scope) -> Iterator[Made]:
        for decided in scope.decisions():
            for code in self._codes(call, replace(scope, decided=decided)):
                named = {call.code.id: [code]} if isinstance(call.code, ast.Name) else {}
                known = replace(scope, decided=decided, given={**scope.given, **named})
                texts = self._texts(call.message, known, call.node)
                for text in [text for text in texts if not _INCOMPLETE.search(text)] or texts:
                    for kind in self._kinds(call.node.func, known, call.node) or call.kinds:
                        yield Made(kind=kind, code=code, message=call.begin + text, module=scope.maker)

    def _codes(self, call: _Call, scope: Scope) -> list[str]:
        """What the code may be; all keys of the table that it looks the sentence up in, if there is one."""
        found = [code for code in self._texts(call.code, scope, call.node) if _CODE.fullmatch(code)]
        lookups = [node for node in ast.walk(call.message) if isinstance(node, ast.Subscript)]
        tables = [
            scope.module.table(node) for node in lookups if ast.unparse(node.slice) == ast.unparse(call.code)
        ]
        if found or not tables:
            return found
        return [code for key in tables[0] for code in self._texts(key, scope, call.node)]

    def _kinds(self, func: ast.expr, scope: Scope, at: ast.AST) -> list[str]:
        """The classes of errors that ``func`` may be."""
        match func:
            case ast.Name(id=name) if name in self.kinds:
                return [name]
            case ast.Name(id=name):
                choices = scope.bound(name, at)
            case ast.IfExp():
                choices = self._choices(func, scope, at)
            case _:
                choices = []
        return [kind for choice in choices for kind in self._kinds(choice, scope, at)]

    def _maker(self, func: ast.expr, scope: Scope) -> Scope | None:
        """The function that takes a code and returns an error, if ``func`` is one."""
        name = func.id if isinstance(func, ast.Name) else func.attr if isinstance(func, ast.Attribute) else ""
        module_name, name = scope.module.imported.get(name, (scope.module.name, name))
        module = self._modules.get(module_name)
        for function in module.functions if module is not None else ():
            makes = isinstance(function.returns, ast.Name) and function.returns.id in self.kinds
            if function.name == name and makes and "code" in parameters(function):
                return Scope(module=module, function=function) if function is not scope.function else None
        return None

    def _choices(self, node: ast.IfExp, scope: Scope, at: ast.AST) -> list[ast.expr]:
        """The branches that may be taken; one, if it is known how the test comes out."""
        known = scope.decided.get(ast.unparse(node.test))
        match node.test:
            case ast.Compare(left=left, ops=[ast.Eq()], comparators=[right]) if known is None:
                sides = [self._texts(side, scope, at) for side in (left, right)]
                if all(len(side) == 1 and OPEN not in side[0] for side in sides):
                    known = sides[0] == sides[1]
        return [node.body, node.orelse] if known is None else [node.body if known else node.orelse]

    def _texts(self, node: ast.expr, scope: Scope, at: ast.AST) -> list[str]:
        """What an expression of text may be, with gaps."""
        match node:
            case ast.Constant(value=value):
                found = [str(value)]
            case ast.JoinedStr(values=parts):
                found = self._joined(parts, scope, at)
            case ast.FormattedValue(value=value):
                found = self._texts(value, scope, at)
            case ast.BinOp(left=left, op=ast.Add(), right=right) if not _is_number(right):
                found = self._joined([left, right], scope, at)
            case ast.IfExp():
                choices = self._choices(node, scope, at)
                found = [text for choice in choices for text in self._texts(choice, scope, at)]
            case ast.Name(id=name):
                found = self._named(name, scope, at)
            case ast.Subscript(slice=key):
                rows = scope.module.table(node).items()
                asked = self._texts(key, scope, at) if rows else []
                found = [text for row, text in rows if self._texts(row, scope, at) == asked]
                found = [text for row in found for text in self._texts(row, scope, at)]
            case _:
                found = []
        return found or [gap(node)]

    def _joined(self, parts: Sequence[ast.expr], scope: Scope, at: ast.AST) -> list[str]:
        choices = [self._texts(part, scope, at) for part in parts]
        combined = itertools.islice(itertools.product(*choices), _MOST_CHOICES)
        return list(dict.fromkeys("".join(texts) for texts in combined))

    def _named(self, name: str, scope: Scope, at: ast.AST) -> list[str]:
        if name in scope.given:
            return scope.given[name]
        bound = scope.bound(name, at)
        if bound:
            return list(dict.fromkeys(text for value in bound for text in self._texts(value, scope, value)))
        module_name, there = scope.module.imported.get(name, (scope.module.name, name))
        module = self._modules.get(module_name)
        value = module.values.get(there) if module is not None else None
        if module is None or not isinstance(value, ast.Constant | ast.JoinedStr | ast.BinOp):
            return []
        return self._texts(value, Scope(module=module), value)


def _is_number(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and not isinstance(node.value, str)
