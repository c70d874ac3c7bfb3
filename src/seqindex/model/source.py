"""From trees to compiled block functions, by way of a real source file.

Numba caches compiled code by source file, so a tree becomes a small module in a cache folder, named by its content: the
same expression is compiled once on a machine, and a second process compiles nothing.

Whoever needs an expression inside a block function of their own (a student with an activation, say) writes the text of
a module around ``statements`` and passes it to ``module_from_source``.
"""

from __future__ import annotations

import atexit
import hashlib
import importlib.util
import os
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import sympy

import seqindex
from seqindex.gaussian import simd
from seqindex.model import blocks, elementary
from seqindex.model.formula import FIELD, PositionProduct, PositionSum, Relu, Sigmoid, Softplus, field

HEADER = """\
import math

import numpy as np
from numba import njit

from seqindex.gaussian.simd import OPTIONS, WIDTH, flat, wide_vectors
from seqindex.model.elementary import cot, exp, relu, sigmoid, sign, softplus, step, tanh
"""
"""Imports that generated modules need."""
_NAMES: dict[Any, str] = {
    sympy.exp: "exp",
    sympy.log: "math.log",
    sympy.Abs: "abs",
    sympy.sign: "sign",
    sympy.sin: "math.sin",
    sympy.cos: "math.cos",
    sympy.tan: "math.tan",
    sympy.cot: "cot",  # SymPy's own, in the slope of tan(x + pi/2)
    sympy.sinh: "math.sinh",
    sympy.cosh: "math.cosh",
    sympy.tanh: "tanh",
    sympy.erf: "math.erf",
    Relu: "relu",
    Sigmoid: "sigmoid",
    Softplus: "softplus",
    sympy.Heaviside: "step",
}
_LONG = 20
"""Terms beyond which a sum or a product is broken into several statements."""


def statements(values: Mapping[str, sympy.Expr], names: Mapping[sympy.Symbol, str], indent: str) -> str:
    """Lines that assign trees to variables or array entries, with common parts computed once.

    Args:
        values: what each left-hand side is to get.
        names: how each symbol of the trees is called in the code.
        indent: put before every line.

    Example:
        >>> from seqindex.model.formula import INPUT
        >>> print(statements({"f": INPUT**2, "slope": 2 * INPUT}, {INPUT: "u"}, "    "))
            f = (u ** 2)
            slope = (2.0 * u)
    """
    symbols = (sympy.Symbol(f"t{i}", real=True) for i in range(10**9))
    with sympy.evaluate(False):  # SymPy would rewrite tan(x + pi/2) and its like to what has no name here
        common, reduced = sympy.cse(list(values.values()), symbols=symbols)
    names = {**names, **{symbol: symbol.name for symbol, _ in common}}
    pairs = [(symbol.name, tree) for symbol, tree in common] + list(zip(values, reduced, strict=True))
    return "\n".join(indent + line for name, tree in pairs for line in _assigned(name, tree, names))


def _assigned(name: str, tree: sympy.Expr, names: Mapping[sympy.Symbol, str]) -> list[str]:
    """A tree of very many terms becomes several statements: Python's parser has limits."""
    if (tree.is_Add or tree.is_Mul) and len(tree.args) > _LONG:
        sign = " + " if tree.is_Add else " * "
        parts = [tree.args[i : i + _LONG] for i in range(0, len(tree.args), _LONG)]
        texts = [sign.join(_printed(part, names) for part in some) for some in parts]
        return [f"total = {texts[0]}", *(f"total = total{sign}{text}" for text in texts[1:]), f"{name} = total"]
    return [f"{name} = {_printed(tree, names)}"]


def _printed(tree: sympy.Expr, names: Mapping[sympy.Symbol, str]) -> str:
    if tree.is_Symbol:
        return names[tree]
    if tree.is_number:
        return f"({float(tree)!r})" if float(tree) < 0 else repr(float(tree))
    parts = [_printed(part, names) for part in tree.args]
    if tree.is_Add:
        return f"({' + '.join(parts)})"
    if tree.is_Mul:
        return f"({' * '.join(parts)})"
    if tree.is_Pow:
        return _power(parts[0], tree.args[1], parts[1])
    return f"{_NAMES[tree.func]}({parts[0]})"


def _power(base: str, exponent: sympy.Expr, text: str) -> str:
    if exponent.is_Rational and exponent < 0:
        return f"(1.0 / {_power(base, -exponent, repr(float(-exponent)))})"
    if exponent.is_Integer:
        return base if exponent == 1 else f"({base} ** {int(exponent)})"
    return f"math.sqrt({base})" if exponent == sympy.Rational(1, 2) else f"({base} ** {text})"


@lru_cache(maxsize=256)
def link_kernel(trees: tuple[sympy.Expr, ...], length: int) -> blocks.TargetKernel:
    """Compiled block function of a link function, one tree an output; its numbers travel in the parameters."""
    text, numbers = link_source(trees)
    return blocks.TargetKernel(blocks.compiled(module_from_source(text).link, blocks.TARGET), np.array(numbers))


def link_source(trees: Sequence[sympy.Expr]) -> tuple[str, list[float]]:
    """Source of a module whose ``link`` is a block function of type ``blocks.TARGET``, and its parameters.

    The source holds the shape of the expression only: other numbers in the same places, or sums and products over
    another number of positions, make the same source and compile nothing.
    """
    numbers: list[float] = []
    lifted = [_lifted(tree, numbers, {}) for tree in trees]
    over = list(
        dict.fromkeys(node for tree in lifted for node in sympy.ordered(tree.atoms(PositionSum, PositionProduct)))
    )
    lines = [HEADER, "", "@njit(**OPTIONS)", "def link(z, parameters, y):", "    wide_vectors()"]
    lines += ["    length = z.shape[0]", "    z = flat(z)", "    y = flat(y)"]
    lines += [f"    {_number(i).name} = parameters[{i}]" for i in range(len(numbers))]
    constants = {_number(i): _number(i).name for i in range(len(numbers))}
    if over:
        lines.append(f"    totals = np.empty({len(over)} * WIDTH)")
    stand_ins = {node: sympy.Symbol(f"total{i}", real=True) for i, node in enumerate(over)}
    for i, node in enumerate(over):
        lines += _loop_over_positions(i, node, constants)
    with sympy.evaluate(False):
        outputs = {f"y[{row} * WIDTH + lane]": tree.xreplace(stand_ins) for row, tree in enumerate(lifted)}
    names = constants | {symbol: f"totals[{i} * WIDTH + lane]" for i, symbol in enumerate(stand_ins.values())}
    lines += ["    for lane in range(WIDTH):", *_loads(outputs.values(), " " * 8)]
    lines.append(statements(outputs, names | _fields(outputs.values()), " " * 8))
    return "\n".join(lines) + "\n", numbers


def _number(index: int) -> sympy.Symbol:
    return sympy.Symbol(f"number{index}", real=True)


def _lifted(tree: sympy.Expr, numbers: list[float], known: dict[sympy.Expr, sympy.Expr]) -> sympy.Expr:
    """A tree with symbols for its numbers, in an order without regard to them; 1, -1 and exponents stay."""
    if tree.is_number:
        if tree in (1, -1):
            return tree
        numbers.append(float(tree))
        return _number(len(numbers) - 1)
    if tree.is_Symbol:
        return tree
    if tree not in known:
        if isinstance(tree, PositionSum | PositionProduct) or (tree.is_Pow and tree.exp.is_number):
            parts = [_lifted(tree.args[0], numbers, known), tree.args[1]]
        elif tree.is_Add:
            terms = sorted(tree.args, key=lambda term: term.as_coeff_Mul()[1].sort_key())
            parts = [_lifted(term, numbers, known) for term in terms]
        else:
            parts = [_lifted(part, numbers, known) for part in tree.args]
        known[tree] = tree.func(*parts, evaluate=False)
    return known[tree]


def _loop_over_positions(index: int, node: sympy.Expr, constants: Mapping[sympy.Symbol, str]) -> list[str]:
    body = node.args[0]
    start, sign = ("0.0", "+") if isinstance(node, PositionSum) else ("1.0", "*")
    entry = f"totals[{index} * WIDTH + lane]"
    return [
        "    for lane in range(WIDTH):",
        f"        {entry} = {start}",
        "    for position in range(length):",
        "        for lane in range(WIDTH):",
        "            field = z[position * WIDTH + lane]",
        *_loads([body], " " * 12),
        statements({"value": body}, {FIELD: "field", **constants} | _fields([body]), " " * 12),
        f"            {entry} {sign}= value",
    ]


def _fields(trees: Any) -> dict[sympy.Symbol, str]:
    """Names of the fields that occur by name."""
    found = {symbol for tree in trees for symbol in tree.free_symbols if symbol.name[1:].isdigit()}
    return {symbol: symbol.name for symbol in found if symbol == field(int(symbol.name[1:]))}


def _loads(trees: Any, indent: str) -> list[str]:
    positions = sorted(int(symbol.name[1:]) for symbol in _fields(trees))
    return [f"{indent}z{position} = z[{position - 1} * WIDTH + lane]" for position in positions]


@lru_cache(maxsize=1024)
def module_from_source(text: str) -> ModuleType:
    """The module of a source text, kept as a file named by its content so that Numba finds what it compiled before."""
    name = "block_" + hashlib.sha256(text.encode()).hexdigest()[:24]
    try:
        path = _written(_cache_folder() / f"{name}.py", text)
    except (OSError, RuntimeError):  # the latter where there is no home
        path = _written(_temporary_folder() / f"{name}.py", text)
    spec = importlib.util.spec_from_file_location(f"seqindex_{name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def _written(path: Path, text: str) -> Path:
    """A file with this text, whoever else writes it at the same time; Numba compiles again if its date changes."""
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        Path(temporary).replace(path)
    return path


def _cache_folder() -> Path:
    """The user's own folder for this version of the package and of what generated modules call.

    Raises:
        OSError: there is none that can be written to, or others can write to it: what lies there is run.
    """
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "seqindex"
    base.mkdir(parents=True, exist_ok=True)
    folder = base / f"blocks-{seqindex.__version__}-{_called()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(f"{folder} must be writable")
    about = folder.stat()
    if hasattr(os, "getuid") and (about.st_uid != os.getuid() or about.st_mode & 0o022):
        raise PermissionError(f"{folder} must belong to the user alone")
    return folder


@lru_cache(maxsize=1)
def _called() -> str:
    """Digest of the package's functions that generated modules call, which Numba does not look at."""
    text = b"".join(Path(module.__file__ or "").read_bytes() for module in (simd, elementary))
    return hashlib.sha256(text).hexdigest()[:8]


@lru_cache(maxsize=1)
def _temporary_folder() -> Path:
    """Where nothing can be kept, a folder for this process."""
    folder = tempfile.mkdtemp(prefix="seqindex-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)
