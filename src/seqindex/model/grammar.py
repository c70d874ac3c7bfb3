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
from seqindex.model.formula import FIELD, INPUT, PositionProduct, PositionSum, Relu, Sigmoid, Softplus, field

_LONGEST, _DEEPEST, _DEGREE, _BITS = 10_000, 60, 60, 2048
"""Bounds on the text, its brackets, a polynomial's degree and the size of a number."""
FUNCTIONS: dict[str, Callable[[sympy.Expr], sympy.Expr]] = {
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


class _Reader:
    """One text on its way into a tree."""

    def __init__(self, what: str, text: Any, names: Mapping[str, sympy.Expr], length: int | None) -> None:
        if not isinstance(text, str):
            raise TypeError(f"{what} must be text such as 'z1*z2', got {check.shown(text)}")
        self.what, self.text, self.names, self.length = what, text.strip(), names, length
        self.inside = False
        self.used: set[str] = set()

    def tree(self) -> ast.expr:
        """Python's syntax tree of the text, after checks that keep Python's own parser safe."""
        text = self.text
        if len(text) > _LONGEST:
            raise ValueError(f"{self.what} must be at most {_LONGEST} characters long, got {len(text)}")
        strange = re.search(r"[^\x20-\x7e\n\t]", text)
        if strange:
            self._refuse(f"must be plain ASCII, got {strange[0]!r}", strange.start())
        depth = 0
        for place, letter in enumerate(text):
            depth += (letter in "([{") - (letter in ")]}")
            if depth > _DEEPEST:
                self._refuse(f"must have at most {_DEEPEST} nested brackets", place)
        signs = re.search(r"(?:[-+~]\s*){20}|(?:\*\*[^*]*){20}", text)
        if signs:
            self._refuse("must have no chain of so many signs or powers", signs.start())
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return ast.parse(" ".join(text.split()), mode="eval").body
        except SyntaxError as error:
            self._refuse("cannot be read", max((error.offset or 1) - 1, 0))
        except (ValueError, MemoryError, RecursionError):
            self._refuse("cannot be read", 0)

    def _refuse(self, message: str, place: int, hint: str = "") -> NoReturn:
        piece = self.text[place : place + 20]
        where = f" at column {place + 1}, {piece!r}" if piece else " at its end"
        raise ValueError(f"{self.what} {message}{where}{hint}")

    def read(self, node: ast.expr, depth: int = 0) -> sympy.Expr:
        """The SymPy tree of a node."""
        if depth > 200:
            self._refuse("is nested too deeply", node.col_offset)
        if isinstance(node, ast.Constant):
            result = self._number(node)
        elif isinstance(node, ast.Name):
            result = self._name(node)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
            value = self.read(node.operand, depth + 1)
            result = -value if isinstance(node.op, ast.USub) else value
        elif isinstance(node, ast.BinOp):
            result = self._operation(node, depth)
        elif isinstance(node, ast.Call):
            result = self._call(node, depth)
        else:
            kind = re.sub(r"(?<!^)([A-Z])", r" \1", type(node).__name__).lower()
            self._refuse(
                f"must be made of numbers, names, + - * / ** and calls of functions; got {kind}", node.col_offset
            )
        if result.has(sympy.zoo, sympy.nan, sympy.oo, -sympy.oo):
            self._refuse("divides by zero or is not finite", node.col_offset)
        if result.is_number and result.is_real is False:
            self._refuse("must be real, got a complex number", node.col_offset)
        return result

    def _number(self, node: ast.Constant) -> sympy.Expr:
        value = node.value
        if isinstance(value, bool) or not isinstance(value, int | float):
            self._refuse("must hold real numbers only", node.col_offset)
        if isinstance(value, int):
            if value.bit_length() > _BITS:
                self._refuse("holds too large a number", node.col_offset)
            return sympy.Integer(value)
        if not math.isfinite(value):
            self._refuse("holds too large a number", node.col_offset)
        return sympy.Rational(repr(value))  # the decimal that was meant, not the nearest binary fraction

    def _name(self, node: ast.Name) -> sympy.Expr:
        name = node.id
        if name == "pi":
            return sympy.pi
        if name == "z" and self.length is not None:
            if not self.inside:
                self._refuse("may hold z only inside sum(...) or prod(...); elsewhere z1, z2, ...", node.col_offset)
            return FIELD
        position = _POSITION.match(name)
        if position and self.length is not None:
            index = int(position[1])
            if not 1 <= index <= self.length or position[1][0] == "0":
                self._refuse(f"has fields z1 to z{self.length} at length {self.length}, got {name}", node.col_offset)
            return field(index)
        if name in self.names:
            self.used.add(name)
            return self.names[name]
        if name in FUNCTIONS or name in _OVER_POSITIONS or _HERMITE.match(name):
            self._refuse(f"must call {name} with one argument, as in {name}(...)", node.col_offset)
        return self._unknown(name, node)

    def _unknown(self, name: str, node: ast.expr) -> NoReturn:
        fields = ["u"] if self.length is None else ["z", "z1", f"z{self.length}", "L"]
        known = [*fields, *self.names, "pi", *FUNCTIONS, *_OVER_POSITIONS, *(f"He{k}" for k in range(_HIGHEST + 1))]
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"; did you mean {near[0]}?" if near else f"; known are {', '.join(dict.fromkeys(known))}"
        self._refuse(f"holds the unknown name {check.shown(name)[1:-1]}", node.col_offset, hint)

    def _operation(self, node: ast.BinOp, depth: int) -> sympy.Expr:
        left, right = self.read(node.left, depth + 1), self.read(node.right, depth + 1)
        if isinstance(node.op, ast.Pow):
            return self._power(left, right, node)
        if isinstance(node.op, ast.Add):
            result = left + right
        elif isinstance(node.op, ast.Sub):
            result = left - right
        elif isinstance(node.op, ast.Mult):
            result = left * right
        elif isinstance(node.op, ast.Div):
            if right.is_zero:
                self._refuse("divides by zero", node.col_offset)
            result = left / right
        else:
            self._refuse("may use + - * / ** only", node.col_offset)
        if result.is_Rational and max(int(result.p).bit_length(), int(result.q).bit_length()) > _BITS:
            self._refuse("makes too large a number", node.col_offset)
        return result

    def _power(self, base: sympy.Expr, exponent: sympy.Expr, node: ast.BinOp) -> sympy.Expr:
        if exponent.is_number:
            size = abs(float(exponent))
            if not base.is_number and size > _DEGREE:
                self._refuse(f"has a power above {_DEGREE}", node.col_offset)
            if base.is_number and size * max(1.0, abs(math.log2(max(abs(float(base)), 1e-300)))) > _BITS:
                self._refuse("makes too large a number", node.col_offset)
            if base.is_zero and exponent.is_negative:
                self._refuse("divides by zero", node.col_offset)
            if base.is_Pow and base.exp.is_number and abs(float(base.exp)) * size > _DEGREE:
                self._refuse(f"has a power above {_DEGREE}", node.col_offset)
        return base**exponent

    def _call(self, node: ast.Call, depth: int) -> sympy.Expr:
        if not isinstance(node.func, ast.Name):
            self._refuse("may call functions by their name only", node.col_offset)
        name = node.func.id
        degree = _HERMITE.match(name)
        over = _OVER_POSITIONS.get(name) if self.length is not None else None
        if name not in FUNCTIONS and degree is None and over is None:
            self._unknown(name, node)
        if degree and int(degree[2]) > _HIGHEST:
            self._refuse(f"has He0 to He{_HIGHEST}, got {name}", node.col_offset)
        if len(node.args) != 1 or node.keywords or isinstance(node.args[0], ast.Starred):
            self._refuse(f"must call {name} with one argument", node.col_offset)
        if over is not None:
            return self._over_positions(over, node, depth)
        argument = self.read(node.args[0], depth + 1)
        if degree is None:
            if argument.is_number and name in ("log", "sqrt") and float(argument) < 0.0:
                self._refuse(f"takes the {name} of a negative number", node.col_offset)
            if argument.is_number and abs(float(argument)) > 1e3 and name in ("exp", "sinh", "cosh"):
                self._refuse("makes too large a number", node.col_offset)
            return FUNCTIONS[name](argument)
        k = int(degree[2])
        factor = sympy.sqrt(sympy.factorial(k)) if degree[1] == "h" else sympy.Integer(1)
        return hermite(k, argument) / factor

    def _over_positions(self, kind: Any, node: ast.Call, depth: int) -> sympy.Expr:
        if self.inside:
            self._refuse("may not nest sum and prod over positions", node.col_offset)
        self.inside = True
        body = self.read(node.args[0], depth + 1)
        self.inside = False
        if body.has(FIELD):
            return kind(body, sympy.Integer(self.length))
        return body * self.length if kind is PositionSum else body**self.length
