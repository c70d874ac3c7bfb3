"""Positional encodings: where the vectors P_l point, in coordinates that do not depend on d.

The rows P_l of an encoding have norm of order one.  They are given by their coordinates along r orthonormal directions
orthogonal to w*, and along w*/sqrt(d); tokens enter the student as x_l + P_l / sqrt(d), hence its fields are shifted by
e_l = P_l.w / sqrt(d).  An injected encoding adds a part along w itself, which shifts the fields by constants c_l (the
paper, appendix D).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from seqindex import check


class Encoding:
    """Positional encoding given by coordinates: fields are shifted by e_l + c_l, e_l = P_l.w / sqrt(d).

    Args:
        matrix: (L, r), coordinates of each P_l along r orthonormal directions that are orthogonal to w*; None for none.
        target_component: (L,), coordinate of each P_l along w*/sqrt(d); None: orthogonal to w*.
        injection: (L,), constants c_l, which SGD does not differentiate; None for zeros.

    Raises:
        TypeError: coordinates that are no array of real numbers, or none at all.
        ValueError: wrong shape, or an entry that is not finite.

    Example:
        >>> Encoding([[1.0, 0.0], [0.6, 0.8]]).length
        2
        >>> Encoding([[1.0], [-1.0]], injection=[0.5, 0.0])
        Encoding(length=2, directions=1, injection=[0.5, 0.0])
    """

    def __init__(
        self,
        matrix: ArrayLike | None = None,
        target_component: ArrayLike | None = None,
        injection: ArrayLike | None = None,
    ) -> None:
        given: dict[str, Any] = {"matrix": matrix, "target_component": target_component, "injection": injection}
        if all(value is None for value in given.values()):
            raise TypeError("encoding must have a matrix, a target_component or an injection, got none of them")
        if matrix is not None:
            self.matrix: NDArray[np.float64] = check.array("matrix", matrix, (None, None))
            if 0 in self.matrix.shape:
                raise ValueError(f"matrix must have at least one row and one column, got shape {self.matrix.shape}")
        else:
            name, value = next((name, value) for name, value in given.items() if value is not None)
            self.matrix = np.empty((len(check.array(name, value, (None,))), 0))
        if self.length == 0:
            raise ValueError("encoding must have at least one position, got none")
        component = np.zeros(self.length) if target_component is None else target_component
        self.target_component: NDArray[np.float64] = check.array("target_component", component, (self.length,))
        constants = np.zeros(self.length) if injection is None else injection
        self.injection: NDArray[np.float64] = check.array("injection", constants, (self.length,))

    @property
    def length(self) -> int:
        """Number of positions L."""
        return int(self.matrix.shape[0])

    @property
    def directions(self) -> int:
        """Number r of directions orthogonal to w* in which e is measured."""
        return int(self.matrix.shape[1])

    def spec(self) -> dict[str, Any]:
        """Description as plain JSON types; ``Encoding(**spec)`` gives it back."""
        matrix = self.matrix.tolist() if self.directions else None
        spec = {"matrix": matrix, "target_component": self.target_component.tolist()}
        return spec | {"injection": self.injection.tolist()} if self.injection.any() else spec

    def __repr__(self) -> str:
        injected = f", injection={check.shown(self.injection.tolist())}" if self.injection.any() else ""
        return f"{type(self).__name__}(length={self.length}, directions={self.directions}{injected})"


def of_length(encoding: Encoding | None, length: int) -> Encoding | None:
    """``encoding`` if it fits a student of this length.

    Raises:
        TypeError: something that is neither an ``Encoding`` nor None.
        ValueError: an encoding of another length.
    """
    if encoding is not None and not isinstance(encoding, Encoding):
        raise TypeError(f"encoding must be an Encoding such as OppositeEncoding(), or None, got {encoding!r}")
    if encoding is not None and encoding.length != length:
        raise ValueError(f"encoding must have length {length} as the student, got {encoding.length}")
    return encoding


class OppositeEncoding(Encoding):
    """P_1 = -P_2 = p, a unit vector orthogonal to w* (the paper, section 4): e_l = (e, -e), length 2.

    Example:
        >>> OppositeEncoding().matrix.tolist()
        [[1.0], [-1.0]]
    """

    def __init__(self) -> None:
        super().__init__([[1.0], [-1.0]])


class RandomEncoding(Encoding):
    """Orthonormal rows in a random orientation: the rows of a Haar-distributed orthogonal L x L matrix.

    Args:
        length: number of positions.
        seed: seed of the orientation.

    Raises:
        TypeError: an argument that is no integer.
        ValueError: a length below 1, or a negative seed.

    Example:
        >>> P = RandomEncoding(3).matrix
        >>> bool(np.allclose(P @ P.T, np.eye(3)))
        True
    """

    def __init__(self, length: int, seed: int = 0) -> None:
        length = check.integer("length", length, 1)
        normals = np.random.default_rng(check.integer("seed", seed, 0)).standard_normal((length, length))
        q, upper = np.linalg.qr(normals)
        super().__init__(q * np.sign(np.diag(upper)))


class SinusoidalEncoding(Encoding):
    """Sines and cosines of the position at geometric frequencies (Vaswani et al. 2017), rows of norm 1.

    Args:
        length: number of positions.
        directions: even number r of coordinates; coordinate 2i and 2i + 1 of position l are the sine and the cosine of
            l / 10000^(2i/r), divided by sqrt(r/2).

    Raises:
        TypeError: an argument that is no integer.
        ValueError: a length below 1, or an odd number of directions.

    Example:
        >>> SinusoidalEncoding(3, directions=4).matrix.shape
        (3, 4)
    """

    def __init__(self, length: int, directions: int = 4) -> None:
        length = check.integer("length", length, 1)
        directions = check.integer("directions", directions, 2)
        if directions % 2:
            raise ValueError(f"directions must be even, got {directions}")
        half = directions // 2
        angles = np.arange(length)[:, None] / 10000.0 ** (np.arange(half) / half)
        super().__init__(
            np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(length, directions) / np.sqrt(half)
        )


class InjectedEncoding(Encoding):
    """Fields are shifted by constants, z_l -> z_l + c_l: the dynamical encoding of the paper's appendix D.

    It stands for rows P_l = c_l w / sqrt(d), a part along w itself that SGD does not differentiate.  It breaks the
    parity of attention, which then learns odd targets too.

    Args:
        injection: (L,), constants c_l.

    Raises:
        TypeError: constants that are no array of real numbers.
        ValueError: wrong shape, or an entry that is not finite.

    Example:
        >>> InjectedEncoding([1.0, 1.0]).directions
        0
    """

    def __init__(self, injection: ArrayLike) -> None:
        super().__init__(injection=check.array("injection", injection, (None,)))
