"""The mutants of a module: each has one operator, constant, branch, result or call changed."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from dataclasses import dataclass
from types import CodeType
from typing import Any

OTHER_OPERATOR: dict[type[ast.AST], type[ast.AST]] = {
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
    ast.And: ast.Or, ast.Or: ast.And, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
}  # fmt: skip
SKIPPED_FIELDS = {"annotation", "returns", "type_comment"}
LOGGERS = {"log", "_log", "logger", "_logger"}


@dataclass(frozen=True)
class Mutant:
    """One change of a module: its line, the lines of its statement, and the node of the tree that is replaced.

    *in_function* tells that the statement does not run at import.
    """

    path: str
    line: int
    lines: range
    in_function: bool
    change: str
    tree: ast.Module
    parent: ast.AST
    field: str
    index: int | None
    new: ast.AST | None

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.change}"

    def compiled(self, filename: str) -> CodeType:
        """Apply the change to the tree, which stays changed, and return the compiled module."""
        if self.index is None:
            setattr(self.parent, self.field, self.new)
        else:
            getattr(self.parent, self.field)[self.index : self.index + 1] = [self.new] if self.new else []
        return compile(ast.fix_missing_locations(self.tree), filename, "exec", dont_inherit=True)


def mutants(path: str, source: str) -> Iterator[Mutant]:
    """Yield each mutant of the module *source*."""
    tree = ast.parse(source)
    yield from _below(Mutant(path, 1, range(1), False, "", tree, tree, "", None, None), tree)


def _below(context: Mutant, node: ast.AST) -> Iterator[Mutant]:
    for field, value in ast.iter_fields(node):
        if field in SKIPPED_FIELDS:
            continue
        for index, child in enumerate(value if isinstance(value, list) else [value]):
            if not isinstance(child, ast.AST) or _is_excluded(node, child):
                continue
            context = _context(context, node, child, field, index if isinstance(value, list) else None)
            for new in _replacements(node, field, child):
                change = f"{_short(child)} -> {_short(new) if new else 'left out'}"
                yield Mutant(**{**vars(context), "change": change, "new": new})
            yield from _below(context, child)


def _context(context: Mutant, node: ast.AST, child: ast.AST, field: str, index: int | None) -> Mutant:
    lines, in_function = context.lines, context.in_function
    if isinstance(child, ast.stmt):
        body = getattr(child, "body", None)
        lines = range(child.lineno, body[0].lineno if body else (child.end_lineno or child.lineno) + 1)
        in_function = in_function or (isinstance(node, ast.FunctionDef) and field == "body")
    fields = vars(context) | {"lines": lines or range(child.lineno, child.lineno + 1), "in_function": in_function}
    fields["line"] = getattr(child, "lineno", context.line)
    return Mutant(**fields | {"parent": node, "field": field, "index": index})


def _is_excluded(parent: ast.AST, node: ast.AST) -> bool:
    match node:
        case ast.Expr(value=ast.Constant()):
            return True  # a docstring
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name)))) if name in LOGGERS:
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


def _replacements(parent: ast.AST, field: str, node: ast.AST) -> Iterator[ast.AST | None]:
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
                yield _with(node, ops=[*ops[:number], OTHER_OPERATOR[type(op)](), *ops[number + 1 :]])
        case ast.BinOp(op=op) | ast.BoolOp(op=op) if type(op) in OTHER_OPERATOR:
            yield _with(node, op=OTHER_OPERATOR[type(op)]())
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield operand
        case ast.Constant(value=value):
            yield from (ast.Constant(other) for other in _other_values(value))
        case ast.Expr():
            yield ast.Pass()


def _other_values(value: Any) -> Iterator[Any]:
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
