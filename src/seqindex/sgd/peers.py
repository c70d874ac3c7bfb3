"""Peers of the benchmark: SGD in d dimensions as one writes it in PyTorch, for attention of length 2.

Positional-semantic target, opposite encoding, identity reduction.  PyTorch is imported when a peer is built, never
otherwise.
"""

from __future__ import annotations

import importlib
import importlib.util
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqindex.model.problem import Problem


def has_torch() -> bool:
    """Whether PyTorch is installed."""
    return importlib.util.find_spec("torch") is not None


class _Peer:
    """What the peers share: w*, P / sqrt(d), A, omega and students of given overlap m, as tensors."""

    replicas = 1

    def __init__(self, problem: Problem, dim: int, rate: float, m: float, seed: int, single: bool) -> None:
        torch: Any = importlib.import_module("torch")
        self.torch = torch
        self.kind = {"dtype": torch.float32 if single else torch.float64}
        self.generator = torch.Generator().manual_seed(seed)
        self.dim, self.rate, self.loss, self.root = dim, rate, problem.loss.name, math.sqrt(dim)
        spec = problem.target.spec()
        self.omega, self.alignment = spec["omega"], torch.tensor(spec["alignment_matrix"], **self.kind)
        self.target = torch.zeros(dim, **self.kind)
        self.target[0] = self.root
        self.shift = torch.zeros(2, dim, **self.kind)
        self.shift[0, 1], self.shift[1, 1] = 1.0 / self.root, -1.0 / self.root
        outside = torch.randn(self.replicas, dim, generator=self.generator, **self.kind)
        outside[:, :2] = 0.0
        w = math.sqrt(1.0 - m * m) * outside / outside.norm(dim=1, keepdim=True)
        w[:, 0] = m
        self.w = w * self.root

    @property
    def overlap(self) -> NDArray[np.float64]:
        """Overlaps m of the students."""
        return np.asarray(self.w.detach() @ self.target / self.dim, dtype=np.float64)


class AutogradLoop(_Peer):
    """One sample a step through modules, autograd and an optimiser that rescales, operation by operation as released.

    The released training loop adds a batch axis of one, divides P by sqrt(d) at every call and rescales the weights to
    their previous norm by a division and a multiplication; so does this one, without the records and the progress bar.
    """

    def __init__(self, problem: Problem, dim: int, rate: float, m: float, seed: int, single: bool) -> None:
        super().__init__(problem, dim, rate, m, seed, single)
        torch, root = self.torch, self.root
        encoding, omega, alignment, norm = self.shift * root, self.omega, self.alignment[None], self.loss == "norm"

        class Attention(torch.nn.Module):  # type: ignore[misc, name-defined]
            def __init__(self, direction: Any) -> None:
                super().__init__()
                self.direction = torch.nn.Parameter(direction)

            def attention(self, x: Any) -> Any:
                samples, length, dim = x.shape
                z = torch.matmul(x.view(samples * length, dim), self.direction).view(samples, length)
                return torch.softmax(torch.einsum("bi,bj->bij", z, z), dim=-1)

        class Student(Attention):
            def forward(self, x: Any) -> Any:
                return self.attention(x.unsqueeze(0) + encoding.unsqueeze(0) / root).squeeze(0)

        class Target(Attention):
            def forward(self, x: Any) -> Any:
                return ((1.0 - omega) * self.attention(x.unsqueeze(0)) + omega * alignment).squeeze(0)

        class NormLoss(torch.nn.Module):  # type: ignore[misc, name-defined]
            def forward(self, y: Any, f: Any) -> Any:
                return torch.mean(torch.norm(y - f, p="fro", dim=(-2, -1)))

        class SphericalSGD(torch.optim.Optimizer):  # type: ignore[misc, name-defined]
            @torch.no_grad()
            def step(self) -> None:
                for group in self.param_groups:
                    for w in group["params"]:
                        before = torch.norm(w.data, dim=-1, keepdim=True)
                        w.add_(w.grad, alpha=-group["lr"])
                        w.data /= torch.norm(w.data, dim=-1, keepdim=True)
                        w.data *= before

        self.student, self.teacher = Student(self.w[0]), Target(self.target)
        self.criterion = NormLoss() if norm else torch.nn.MSELoss(reduction="sum")
        self.w = self.student.direction[None]
        self.optimizer = SphericalSGD(self.student.parameters(), {"lr": rate})

    def run(self, steps: int) -> None:
        """Make ``steps`` steps."""
        torch = self.torch
        for _ in range(steps):
            x = torch.randn(2, self.dim, generator=self.generator, **self.kind) / self.root
            with torch.no_grad():
                y = self.teacher(x)
            self.optimizer.zero_grad()
            self.criterion(y, self.student(x)).backward()
            self.optimizer.step()
        self.w = self.student.direction[None]


class ClosedGradient(_Peer):
    """64 replicas at once, the gradient in closed form."""

    replicas = 64

    def run(self, steps: int) -> None:
        """Make ``steps`` steps of every replica."""
        torch, w = self.torch, self.w
        x = torch.empty(self.replicas, 2, self.dim, **self.kind)
        with torch.no_grad():
            for _ in range(steps):
                x.normal_(0.0, 1.0 / self.root, generator=self.generator)
                zstar = x @ self.target
                y = torch.softmax(zstar[:, :, None] * zstar[:, None, :], 2)
                y = (1.0 - self.omega) * y + self.omega * self.alignment
                x += self.shift
                z = torch.bmm(x, w[:, :, None])[:, :, 0]
                f = torch.softmax(z[:, :, None] * z[:, None, :], 2)
                r = f - y
                r = 2.0 * r if self.loss == "square" else r / r.square().sum((1, 2), keepdim=True).sqrt()
                e = f * (r - (f * r).sum(2, keepdim=True))
                c = torch.bmm(e + e.transpose(1, 2), z[:, :, None])
                w -= self.rate * (x * c).sum(1)
                w *= self.root / w.norm(dim=1, keepdim=True)


PEERS: dict[str, tuple[Any, bool]] = {
    "PyTorch, autograd, float32": (AutogradLoop, True),
    "PyTorch, autograd, float64": (AutogradLoop, False),
    "PyTorch, 64 replicas, float32": (ClosedGradient, True),
    "PyTorch, 64 replicas, float64": (ClosedGradient, False),
}
"""Peers by name: how they are built, and whether in single precision."""
