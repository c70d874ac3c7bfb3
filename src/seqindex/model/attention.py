"""Single-layer attention with tied query and key: the student of the paper's sections 2 and 4."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from seqindex import check
from seqindex.gaussian.simd import OPTIONS, WIDTH, flat, wide_vectors
from seqindex.model import blocks
from seqindex.model.encoding import Encoding, of_length
from seqindex.model.frame import Frame
from seqindex.model.reduction import Reduction, as_reduction, from_spec
from seqindex.model.softmax import attention_matrix, softmax_block

Array = NDArray[Any]

# Parameters of the kernels: [L, then for each non-zero coefficient of the reduction: output, entry i*L+j, value]; the
# identity reduction is the bare [L], since copying is much faster than multiplying by the unit matrix.
# Rows of scratch: S (L^2), one row for the softmax, then D = R^T r (L^2), and one row.


@njit(**OPTIONS)
def _reduce(parameters, work, f):  # type: ignore[no-untyped-def]
    wide_vectors()
    if parameters.size == 1:
        for i in range(f.size):
            f[i] = work[i]
        return
    f[:] = 0.0
    for t in range((parameters.size - 1) // 3):
        output = int(parameters[1 + 3 * t]) * WIDTH
        entry = int(parameters[2 + 3 * t]) * WIDTH
        value = parameters[3 + 3 * t]
        for lane in range(WIDTH):
            f[output + lane] += value * work[entry + lane]


@njit(**OPTIONS)
def _softmax_forward(z, parameters, work, f):  # type: ignore[no-untyped-def]
    wide_vectors()
    length = z.shape[0]
    work = flat(work)
    softmax_block(flat(z), work, work[length * length * WIDTH :], length)
    _reduce(parameters, work, flat(f))


@njit(**OPTIONS)
def _linear_forward(z, parameters, work, f):  # type: ignore[no-untyped-def]
    wide_vectors()
    length = z.shape[0]
    z = flat(z)
    s = flat(work)
    for i in range(length):
        for j in range(length):
            row = (i * length + j) * WIDTH
            for lane in range(WIDTH):
                s[row + lane] = z[i * WIDTH + lane] * z[j * WIDTH + lane]
    _reduce(parameters, s, flat(f))


@njit(**OPTIONS)
def _pull_back(parameters, work, r, length):  # type: ignore[no-untyped-def]
    """D = R^T r, written behind S and its row of scratch; returns the offset of D."""
    wide_vectors()
    start = (length * length + 1) * WIDTH
    if parameters.size == 1:
        for i in range(r.size):
            work[start + i] = r[i]
        return start
    work[start : start + length * length * WIDTH] = 0.0
    for t in range((parameters.size - 1) // 3):
        output = int(parameters[1 + 3 * t]) * WIDTH
        entry = start + int(parameters[2 + 3 * t]) * WIDTH
        value = parameters[3 + 3 * t]
        for lane in range(WIDTH):
            work[entry + lane] += value * r[output + lane]
    return start


@njit(**OPTIONS)
def _score_gradient(z, e, c, length):  # type: ignore[no-untyped-def]
    """c_l = sum_j (E_lj + E_jl) z_j, from E = d loss / d scores."""
    wide_vectors()
    c[:] = 0.0
    for i in range(length):
        for j in range(length):
            row = (i * length + j) * WIDTH
            mirror = (j * length + i) * WIDTH
            for lane in range(WIDTH):
                c[i * WIDTH + lane] += (e[row + lane] + e[mirror + lane]) * z[j * WIDTH + lane]


@njit(**OPTIONS)
def _pair_gradient(z, s, d, c):  # type: ignore[no-untyped-def]
    """c at length 2 in one loop: E_11 = -E_12 = S_11 S_12 (D_11 - D_12), and likewise for the second row."""
    wide_vectors()
    for lane in range(WIDTH):
        first = s[lane] * s[WIDTH + lane] * (d[lane] - d[WIDTH + lane])
        second = s[2 * WIDTH + lane] * s[3 * WIDTH + lane] * (d[3 * WIDTH + lane] - d[2 * WIDTH + lane])
        cross = first + second
        c[lane] = 2.0 * first * z[lane] - cross * z[WIDTH + lane]
        c[WIDTH + lane] = 2.0 * second * z[WIDTH + lane] - cross * z[lane]


@njit(**OPTIONS)
def _softmax_backward(z, parameters, work, r, c):  # type: ignore[no-untyped-def]
    wide_vectors()
    length = z.shape[0]
    work = flat(work)
    start = _pull_back(parameters, work, flat(r), length)
    if length == 2:
        _pair_gradient(flat(z), work, work[start:], flat(c))
        return
    mean = start + length * length * WIDTH
    for i in range(length):  # E_ij = S_ij (D_ij - sum_j' S_ij' D_ij')
        for lane in range(WIDTH):
            work[mean + lane] = 0.0
        for j in range(length):
            row = (i * length + j) * WIDTH
            for lane in range(WIDTH):
                work[mean + lane] += work[row + lane] * work[start + row + lane]
        for j in range(length):
            row = (i * length + j) * WIDTH
            for lane in range(WIDTH):
                work[start + row + lane] = work[row + lane] * (work[start + row + lane] - work[mean + lane])
    _score_gradient(flat(z), work[start:], flat(c), length)


@njit(**OPTIONS)
def _linear_backward(z, parameters, work, r, c):  # type: ignore[no-untyped-def]
    wide_vectors()
    length = z.shape[0]
    work = flat(work)
    start = _pull_back(parameters, work, flat(r), length)
    _score_gradient(flat(z), work[start:], flat(c), length)


def _linear_matrix(z: Array) -> Array:
    scores: Array = z[..., :, None] * z[..., None, :]
    return scores


def _softmax_score_gradient(s: Array, d: Array) -> Array:
    e: Array = s * (d - (s * d).sum(-1, keepdims=True))
    return e


def _linear_score_gradient(s: Array, d: Array) -> Array:
    return d


@dataclass(frozen=True)
class Scores:
    """How the scores z z^T become the attention matrix S.

    Attributes:
        matrix: S of fields, shape (..., L) -> (..., L, L).
        score_gradient: E = d loss / d scores from S and D = d loss / d S, shapes (..., L, L).
        forward: block function of type ``blocks.FORWARD``.
        backward: block function of type ``blocks.BACKWARD``.
    """

    matrix: Callable[[Array], Array]
    score_gradient: Callable[[Array, Array], Array]
    forward: Any
    backward: Any


SCORES = {
    "softmax": Scores(attention_matrix, _softmax_score_gradient, _softmax_forward, _softmax_backward),
    "linear": Scores(_linear_matrix, _linear_score_gradient, _linear_forward, _linear_backward),
}
"""Nonlinearities of the scores by name."""


class Attention:
    """f(X) = reduction(softmax(z z^T)), z_l = (x_l + P_l / sqrt(d)).w (the paper, eq. 5).

    Args:
        length: sequence length L.
        encoding: positional encoding; None for none.
        reduction: "identity" (L^2 outputs), "trace" (Tr S / sqrt(L), as released), "plain_trace" (the paper's Tr S),
            or a ``Reduction`` object such as ``Projection(a_left, a_right)``.
        scores: "softmax", or "linear" for S = z z^T.

    Raises:
        TypeError: a length that is no integer, or an encoding that is no ``Encoding``.
        ValueError: a length below 1, an unknown name, or an encoding or reduction of another length.

    Example:
        >>> student = Attention(length=2, reduction="plain_trace")
        >>> student(np.zeros((5, 2))).shape, student(np.zeros(2)).item()
        ((5, 1), 1.0)
    """

    def __init__(
        self,
        length: int,
        encoding: Encoding | None = None,
        reduction: str | Reduction = "identity",
        scores: str = "softmax",
    ) -> None:
        self.length = check.integer("length", length, 1)
        self.encoding = of_length(encoding, self.length)
        self.reduction = as_reduction(reduction)
        self.scores = check.choice("scores", scores, SCORES)
        self._flat = self.reduction.coefficients(self.length).reshape(-1, self.length**2)
        self._whole = np.array_equal(self._flat, np.eye(self.length**2))

    @property
    def outputs(self) -> int:
        """Number k of outputs."""
        return int(self._flat.shape[0])

    @property
    def frame(self) -> Frame:
        """Coordinates of the encoding."""
        return Frame.of(self.length, self.encoding)

    @property
    def combinations(self) -> Array:
        """The identity matrix, (L, L): the outputs depend on every field."""
        return np.eye(self.length)

    @property
    def core(self) -> Attention:
        """This student."""
        return self

    def __call__(self, z: Array) -> Array:
        """Outputs of fields, shape (..., L) -> (..., k).

        Raises:
            ValueError: fields of another length.
        """
        z = check.fields("z", z, self.length)
        s = SCORES[self.scores].matrix(z)
        flat = s.reshape(*z.shape[:-1], self.length**2)
        return flat if self._whole else flat @ self._flat.T.astype(z.dtype)

    def pull_back(self, z: Array, r: Array) -> Array:
        """J^T r, J the Jacobian of the outputs in the fields: shapes (..., L), (..., k) -> (..., L).

        Raises:
            ValueError: fields of another length, or r of another number of outputs.
        """
        z = check.fields("z", z, self.length)
        r = check.fields("r", r, self.outputs)
        d = r if self._whole else r @ self._flat.astype(z.dtype)
        d = d.reshape(*r.shape[:-1], self.length, self.length)
        scores = SCORES[self.scores]
        e = scores.score_gradient(scores.matrix(z), d)
        c: Array = ((e + np.swapaxes(e, -1, -2)) * z[..., None, :]).sum(-1)
        return c

    def jacobian(self, z: Array) -> Array:
        """Jacobian of the outputs in the fields, shape (..., L) -> (..., k, L)."""
        z = check.fields("z", z, self.length)
        return self.pull_back(z[..., None, :], np.eye(self.outputs, dtype=z.dtype))

    @property
    def kernel(self) -> blocks.StudentKernel:
        """Compiled block functions for the simulation."""
        scores = SCORES[self.scores]
        entries = list(zip(*np.nonzero(self._flat), strict=True)) or [(0, 0)]  # a reduction to zero keeps one entry
        triples = [] if self._whole else [(k, entry, self._flat[k, entry]) for k, entry in entries]
        return blocks.StudentKernel(
            forward=blocks.compiled(scores.forward, blocks.FORWARD),
            backward=blocks.compiled(scores.backward, blocks.BACKWARD),
            parameters=np.array([float(self.length), *np.ravel(triples)], dtype=np.float64),
            work_rows=2 * self.length**2 + 2,
        )

    def spec(self) -> dict[str, Any]:
        """Description as plain JSON types."""
        return {
            "kind": "Attention",
            "length": self.length,
            "encoding": None if self.encoding is None else self.encoding.spec(),
            "reduction": self.reduction.spec(),
            "scores": self.scores,
        }

    @classmethod
    def from_spec(cls, spec: dict[str, Any]) -> Attention:
        """Inverse of ``spec``."""
        encoding = None if spec["encoding"] is None else Encoding(**spec["encoding"])
        return cls(spec["length"], encoding, from_spec(spec["reduction"]), spec["scores"])

    def __repr__(self) -> str:
        reduction = self.reduction.spec().get("name", type(self.reduction).__name__)
        parts = f"encoding={self.encoding!r}, reduction={reduction!r}, scores={self.scores!r}"
        return f"Attention(length={self.length}, {parts})"
