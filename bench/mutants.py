"""The small changes of a module that a test ought to notice: another operator, constant, branch, answer or call."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from dataclasses import dataclass
from types import CodeType
from typing import Any

OTHER: dict[type[ast.AST], type[ast.AST]] = {
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
    ast.And: ast.Or, ast.Or: ast.And, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
}  # fmt: skip
LEFT_ALONE = {"annotation", "returns", "type_comment"}
LOGS = {"log", "_log", "logger", "_logger"}


@dataclass(frozen=True)
class Mutant:
    """One change of a module: where, what, and the lines of the statement it is in; *called* if a function holds it."""

    path: str
    line: int
    lines: range
    called: bool
    what: str
    tree: ast.Module
    parent: ast.AST
    field: str
    index: int | None
    new: ast.AST | None

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.what}"

    def compiled(self, filename: str) -> CodeType:
        """Make the change, for good, and return the code of the changed module."""
        if self.index is None:
            setattr(self.parent, self.field, self.new)
        else:
            getattr(self.parent, self.field)[self.index : self.index + 1] = [self.new] if self.new else []
        return compile(ast.fix_missing_locations(self.tree), filename, "exec", dont_inherit=True)


def mutants(path: str, source: str) -> Iterator[Mutant]:
    """Yield each change of the module *source* there is to try."""
    tree = ast.parse(source)
    yield from _below(Mutant(path, 1, range(1), False, "", tree, tree, "", None, None), tree)


def _below(place: Mutant, node: ast.AST) -> Iterator[Mutant]:
    for field, value in ast.iter_fields(node):
        if field in LEFT_ALONE:
            continue
        for index, child in enumerate(value if isinstance(value, list) else [value]):
            if not isinstance(child, ast.AST) or _does_not_matter(node, child):
                continue
            here = _place(place, node, child, field, index if isinstance(value, list) else None)
            for new in _instead(node, field, child):
                what = f"{_short(child)} -> {_short(new) if new else 'left out'}"
                yield Mutant(**{**vars(here), "what": what, "new": new})
            yield from _below(here, child)


def _place(place: Mutant, node: ast.AST, child: ast.AST, field: str, index: int | None) -> Mutant:
    lines, called = place.lines, place.called
    if isinstance(child, ast.stmt):
        body = getattr(child, "body", None)
        lines = range(child.lineno, body[0].lineno if body else (child.end_lineno or child.lineno) + 1)
        called = called or (isinstance(node, ast.FunctionDef) and field == "body")
    known = vars(place) | {"lines": lines or range(child.lineno, child.lineno + 1), "called": called}
    known["line"] = getattr(child, "lineno", place.line)
    return Mutant(**known | {"parent": node, "field": field, "index": index})


def _does_not_matter(parent: ast.AST, node: ast.AST) -> bool:
    match node:
        case ast.Expr(value=ast.Constant()):
            return True  # a docstring
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name)))) if name in LOGS:
            return True
        case ast.keyword(arg="slots" | "strict" | "maxsize") | ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return True
        case ast.Subscript(value=ast.Name(id=name)) if name[0].isupper() and not name.isupper():
            return True  # Literal["a"], Callable[..., None]
        case ast.Assign(targets=[ast.Name(id="__all__" | "__slots__")]):
            return True
        case ast.Constant(value=None):
            return isinstance(parent, ast.Compare | ast.Return | ast.BinOp)
    return isinstance(parent, ast.Call) and isinstance(parent.func, ast.Name) and parent.func.id in {"TypeVar", "cast"}


def _instead(parent: ast.AST, field: str, node: ast.AST) -> Iterator[ast.AST | None]:
    match parent, field:
        case (ast.If() | ast.IfExp(), "test") | (ast.comprehension(), "ifs"):
            yield from (ast.Constant(True), ast.Constant(False))
        case ast.Return(), "value":
            yield ast.Constant(None)
        case ast.Call(), "keywords":
            yield None
    match node:
        case ast.Compare(ops=ops):
            for number, op in enumerate(ops):
                yield _with(node, ops=[*ops[:number], OTHER[type(op)](), *ops[number + 1 :]])
        case ast.BinOp(op=op) | ast.BoolOp(op=op) if type(op) in OTHER:
            yield _with(node, op=OTHER[type(op)]())
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield operand
        case ast.Constant(value=value):
            yield from (ast.Constant(other) for other in _another(value))
        case ast.Expr():
            yield ast.Pass()


def _another(value: Any) -> Iterator[Any]:
    match value:
        case bool():
            yield not value
        case int() | float():
            yield value + 1
        case str():
            yield f"XX{value}"
        case bytes():
            yield b"XX" + value
        case None:
            yield 1


def _with(node: ast.AST, **fields: Any) -> ast.AST:
    new = copy.copy(node)
    for name, value in fields.items():
        setattr(new, name, value)
    return new


def _short(node: ast.AST) -> str:
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= 90 else f"{text[:80]} ... {text[-8:]}"
