"""Link functions and activations as text: parsed against an allow-list into SymPy trees, never evaluated.

The text goes through Python's own grammar; every node of its syntax tree is then either one of those below or refused
with its place in the text.  Numbers stay exact (0.1 is 1/10), so that polynomials have exact Hermite coefficients.
"""

from __future__ import annotations

import ast
import difflib
import math
import re
import warnings
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

import sympy

from seqindex import check
from seqindex.model.bounds import HIGHEST_DEGREE, MOST_BITS, MOST_NODES, Bounds, OutOfBoundsError, bits, vanishes
from seqindex.model.formula import FIELD, INPUT, PositionProduct, PositionSum, Relu, Sigmoid, Softplus, field

_LONGEST, _DEEPEST = 10_000, 60
"""Bounds on the text and on its brackets."""
_LARGE = 100
"""Nodes of a tree, or bits of a number, beyond which SymPy would take long to rewrite a power."""
FUNCTIONS: dict[str, Callable[..., sympy.Expr]] = {
    "exp": sympy.exp,
    "log": sympy.log,
    "sqrt": sympy.sqrt,
    "abs": sympy.Abs,
    "sign": sympy.sign,
    "sin": sympy.sin,
    "cos": sympy.cos,
    "tan": sympy.tan,
    "sinh": sympy.sinh,
    "cosh": sympy.cosh,
    "tanh": sympy.tanh,
    "erf": sympy.erf,
    "relu": Relu,
    "sigmoid": Sigmoid,
    "softplus": Softplus,
}
_OVER_POSITIONS = {"sum": PositionSum, "prod": PositionProduct}
_HERMITE = re.compile(r"(He|h)(\d{1,3})\Z")
_POSITION = re.compile(r"z(\d{1,9})\Z")
_HIGHEST = 12


def parse_link(text: str, length: int, parameters: Mapping[str, Any] | None = None) -> tuple[sympy.Expr, ...]:
    """The link function written in ``text``: one tree an output.

    Args:
        text: an expression in z1..zL, or a list of them such as "[z1, z1*z2]"; z stands for the field of each position
            inside sum(...) and prod(...).
        length: sequence length L.
        parameters: values of further names.

    Raises:
        TypeError: text that is none, or a parameter that is no number.
        ValueError: anything outside the grammar, with its place.

    Example:
        >>> parse_link("a*z1*z2 + sum(He2(z))", 2, {"a": 0.5})
        (z1*z2/2 + PositionSum(z**2 - 1, 2),)
    """
    length = check.integer("length", length, 1)
    names = {"L": sympy.Integer(length)} | {f"z{i}": field(i) for i in range(1, min(length, 9) + 1)}
    values = {name: _parameter(name, value, names) for name, value in (parameters or {}).items()}
    reader = _Reader("target", text, names | values, length)
    body = reader.tree()
    parts = body.elts if isinstance(body, ast.List | ast.Tuple) else [body]
    if not parts:
        raise ValueError("target must have at least one output, got none")
    outputs = tuple(reader.read(part) for part in parts)
    unused = [name for name in values if name not in reader.used]
    if unused:
        raise ValueError(f"parameter {unused[0]!r} does not occur in target {check.shown(text)}")
    return outputs


def parse_activation(text: str) -> sympy.Expr:
    """The activation written in ``text``, an expression in u.

    Raises:
        TypeError, ValueError: as for ``parse_link``.

    Example:
        >>> parse_activation("relu(u) + u**2/10")
        u**2/10 + Relu(u)
    """
    reader = _Reader("activation", text, {"u": INPUT}, None)
    return reader.read(reader.tree())


def parse_number(what: str, text: str, values: Mapping[str, int]) -> float:
    """The number written in ``text``, an expression in names that have values, such as "0.3*sqrt(L)/d".

    Args:
        what: what it is, for messages.
        text: the expression.
        values: whole numbers by name.

    Raises:
        TypeError, ValueError: as for ``parse_link``, or a value that is no finite real number.

    Example:
        >>> parse_number("steps", "40*d*log(d)", {"d": 1000, "L": 4})
        276310.2111592855
    """
    reader = _Reader(what, text, {name: sympy.Integer(value) for name, value in values.items()}, None)
    value = sympy.N(reader.read(reader.tree()), 20)
    if not value.is_real or not value.is_finite:
        raise ValueError(f"{what} must be a real number, got {check.shown(text)}")
    return float(value)


def hermite(degree: int, x: sympy.Expr) -> sympy.Expr:
    """He_k(x), probabilists', as a polynomial.

    Example:
        >>> hermite(3, INPUT)
        u**3 - 3*u
    """
    n = degree
    return sympy.Add(
        *(
            sympy.Rational((-1) ** j * math.factorial(n), math.factorial(j) * math.factorial(n - 2 * j) * 2**j)
            * x ** (n - 2 * j)
            for j in range(n // 2 + 1)
        )
    )


def _parameter(name: str, value: Any, names: Mapping[str, Any]) -> sympy.Expr:
    taken = name in names or name in FUNCTIONS or name in _OVER_POSITIONS or name in ("z", "u", "pi", "L")
    if taken or _HERMITE.match(name) or _POSITION.match(name):
        raise ValueError(f"parameter must have a name of its own, got {name!r}, which the grammar uses")
    return sympy.Rational(repr(check.number(f"parameter {name}", value)))


class RefusedError(ValueError):
    """Text outside the grammar; the message names the place."""


class _Reader:
    """One text on its way into a tree."""

    def __init__(self, what: str, text: Any, names: Mapping[str, sympy.Expr], length: int | None) -> None:
        if not isinstance(text, str):
            raise TypeError(f"{what} must be text such as 'z1*z2', got {check.shown(text)}")
        self.what, self.names, self.length = what, names, length
        self.text = re.sub(r"\s", " ", text) if len(text) <= _LONGEST else text
        self.start = len(self.text) - len(self.text.lstrip())
        self.inside = False
        self.used: set[str] = set()
        self.bounds = Bounds()

    def tree(self) -> ast.expr:
        """Python's syntax tree of the text, after checks that keep Python's own parser safe."""
        text = self.text
        if len(text) > _LONGEST:
            raise ValueError(f"{self.what} must be at most {_LONGEST} characters long, got {len(text)}")
        strange = re.search(r"[^ -~]|[#\\\\]", text)
        if strange:
            self._refuse(f"must be plain ASCII without comments, got {strange[0]!a}", strange.start())
        depth = 0
        for place, letter in enumerate(text):
            depth += (letter in "([{") - (letter in ")]}")
            if depth > _DEEPEST:
                self._refuse(f"must have at most {_DEEPEST} nested brackets", place)
        signs = re.search(r"(?:[-+~] *){20}", text)
        if signs:
            self._refuse("must have fewer signs in a row", signs.start())
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return ast.parse(text[self.start :], mode="eval").body
        except SyntaxError as error:
            example = "u**2 + relu(u)" if self.length is None else "2*He3(z1) + sum(z**2)/L"
            self._refuse(
                "cannot be read", self.start + max((error.offset or 1) - 1, 0), f"; an expression is such as {example}"
            )
        except (ValueError, MemoryError, RecursionError):
            self._refuse("has too many operations in a row", self.start)

    def _refuse(self, message: str, place: int, hint: str = "") -> NoReturn:
        piece = self.text[place : place + 20].rstrip()
        where = f" at column {place + 1}, {piece!r}" if piece else " at its end"
        raise RefusedError(f"{self.what} {message}{where}{hint}")

    def _refuse_node(self, message: str, node: ast.expr, hint: str = "") -> NoReturn:
        self._refuse(message, self.start + node.col_offset, hint)

    def read(self, node: ast.expr, depth: int = 0) -> sympy.Expr:
        """The SymPy tree of a node."""
        if depth > 200:
            self._refuse_node("is nested too deeply", node)
        try:
            tree = self._tree_of(node, depth)
            self.bounds.check(tree)
        except OutOfBoundsError as error:
            self._refuse_node(str(error), node)
        except RefusedError:
            raise
        except Exception:  # noqa: BLE001 - SymPy fails on some numbers, and in many ways
            self._refuse_node("is more than SymPy can read", node)
        return tree

    def _tree_of(self, node: ast.expr, depth: int) -> sympy.Expr:
        if isinstance(node, ast.Constant):
            return self._number(node)
        if isinstance(node, ast.Name):
            return self._name(node)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
            value = self.read(node.operand, depth + 1)
            return -value if isinstance(node.op, ast.USub) else value
        if isinstance(node, ast.BinOp):
            return self._operation(node, depth)
        if isinstance(node, ast.Call):
            return self._call(node, depth)
        kind = re.sub(r"(?<!^)([A-Z])", r" \1", type(node).__name__).lower()
        return self._refuse_node(f"must be made of numbers, names, + - * / ** and calls of functions; got {kind}", node)

    def _number(self, node: ast.Constant) -> sympy.Expr:
        value = node.value
        if isinstance(value, bool) or not isinstance(value, int | float):
            self._refuse_node("must hold real numbers only", node)
        if isinstance(value, int):
            if value.bit_length() > MOST_BITS:
                self._refuse_node("holds too large a number", node)
            return sympy.Integer(value)
        if not math.isfinite(value):
            self._refuse_node("holds too large a number", node)
        if value == 0.0 and re.match(r"[0_.]*[1-9]", self.text[self.start + node.col_offset :]):
            self._refuse_node("holds too small a number", node)
        return sympy.Rational(repr(value))  # the decimal that was meant, not the nearest binary fraction

    def _name(self, node: ast.Name) -> sympy.Expr:
        name = node.id
        if name == "pi":
            return sympy.pi
        if name == "z" and self.length is not None:
            if not self.inside:
                self._refuse_node("may hold z only inside sum(...) or prod(...); elsewhere z1, z2, ...", node)
            return FIELD
        position = _POSITION.match(name)
        if position and self.length is not None:
            index = int(position[1])
            if not 1 <= index <= self.length or position[1][0] == "0":
                self._refuse_node(f"has fields z1 to z{self.length} at length {self.length}, got {name}", node)
            return field(index)
        if name in self.names:
            self.used.add(name)
            return self.names[name]
        if name in FUNCTIONS or name in _OVER_POSITIONS or _HERMITE.match(name):
            self._refuse_node(f"must call {name} with one argument, as in {name}(...)", node)
        return self._unknown(name, node)

    def _unknown(self, name: str, node: ast.expr) -> NoReturn:
        fields = [] if self.length is None else ["z", "z1", f"z{self.length}", *_OVER_POSITIONS]
        known = list(dict.fromkeys([*fields, *self.names, "pi", *FUNCTIONS]))
        near = difflib.get_close_matches(name, [*known, *(f"He{k}" for k in range(10))], n=1)
        hint = (
            f"; did you mean {near[0]}?"
            if near and len(name) > 2
            else (f"; known are {', '.join(known)}, He0 to He{_HIGHEST} and h0 to h{_HIGHEST}")
        )
        self._refuse_node(f"holds the unknown name {check.shown(name)[1:-1]}", node, hint)

    def _operation(self, node: ast.BinOp, depth: int) -> sympy.Expr:
        if isinstance(node.op, ast.Pow):
            base, exponent = self.read(node.left, depth + 1), self.read(node.right, depth + 1)
            return self._power(base, exponent, node)
        if isinstance(node.op, ast.Add | ast.Sub):
            return sympy.Add(*self._chain(node, depth, (ast.Add, ast.Sub)))
        if isinstance(node.op, ast.Mult | ast.Div):
            return sympy.Mul(*self._chain(node, depth, (ast.Mult, ast.Div)))
        hint = "; a power is written **" if isinstance(node.op, ast.BitXor) else ""
        return self._refuse_node("may use + - * / ** only", node, hint)

    def _chain(self, node: ast.expr, depth: int, kinds: tuple[type, type]) -> list[sympy.Expr]:
        """Terms or factors of a chain such as a + b - c, which Python nests to the left."""
        parts: list[sympy.Expr] = []
        size = 0
        while isinstance(node, ast.BinOp) and isinstance(node.op, kinds):
            part = self.read(node.right, depth + 1)
            if isinstance(node.op, ast.Sub):
                part = -part
            elif isinstance(node.op, ast.Div):
                if vanishes(part):
                    self._refuse_node("divides by zero", node.right)
                part = 1 / part
            parts.append(part)
            size += self.bounds.check(part)[0]
            if size > MOST_NODES:
                self._refuse_node("grows too large when written out", node)
            node = node.left
        return [self.read(node, depth + 1), *reversed(parts)]

    def _power(self, base: sympy.Expr, exponent: sympy.Expr, node: ast.expr) -> sympy.Expr:
        if exponent.is_number:
            size = abs(float(exponent))
            if base.is_number and vanishes(base) and exponent.is_negative:
                self._refuse_node("divides by zero", node)
            if not base.is_number and size > HIGHEST_DEGREE:
                self._refuse_node(f"has a power above {HIGHEST_DEGREE}", node)
            if base.is_number and size * (bits(base) if base.is_Rational else 1) > MOST_BITS:
                self._refuse_node("makes too large a number", node)
        root = base.is_Rational and not exponent.is_Integer
        large = bits(base) > _LARGE if root else self.bounds.check(base)[0] > _LARGE
        return sympy.Pow(base, exponent, evaluate=not large)

    def _call(self, node: ast.Call, depth: int) -> sympy.Expr:
        if not isinstance(node.func, ast.Name):
            self._refuse_node("may call functions by their name only", node, "; a product is written *")
        name = node.func.id
        degree = _HERMITE.match(name)
        over = _OVER_POSITIONS.get(name) if self.length is not None else None
        if name in ("z", "pi", *self.names) or _POSITION.match(name):
            self._refuse_node(f"calls {name}, which is no function", node, "; a product is written *")
        if name not in FUNCTIONS and degree is None and over is None:
            self._unknown(name, node)
        if degree and int(degree[2]) > _HIGHEST:
            self._refuse_node(f"has He0 to He{_HIGHEST}, got {name}", node)
        if len(node.args) != 1 or node.keywords or isinstance(node.args[0], ast.Starred):
            self._refuse_node(f"must call {name} with one argument", node)
        if over is not None:
            return self._over_positions(over, node, depth)
        argument = self.read(node.args[0], depth + 1)
        if degree is None:
            if name == "sqrt":
                return self._power(argument, sympy.Rational(1, 2), node)
            # SymPy's rewriting of other arguments takes long and leaves the grammar: tan(x + pi/2) is -cot(x).
            return FUNCTIONS[name](argument, evaluate=argument.is_number)
        k = int(degree[2])
        factor = sympy.sqrt(sympy.factorial(k)) if degree[1] == "h" else sympy.Integer(1)
        return hermite(k, argument) / factor

    def _over_positions(self, kind: Any, node: ast.Call, depth: int) -> sympy.Expr:
        if self.inside:
            self._refuse_node("may not nest sum and prod over positions", node)
        self.inside = True
        body = self.read(node.args[0], depth + 1)
        self.inside = False
        if body.has(FIELD):
            return kind(body, sympy.Integer(self.length))
        length = sympy.Integer(self.length)
        return body * length if kind is PositionSum else self._power(body, length, node)
