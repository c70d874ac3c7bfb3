"""How much faster than a plain PyTorch loop are the reduced chains of tied and untied networks, on one core?

The peer is an autograd loop of one sample a step in d = 1000 dimensions (float32, PyTorch's default), L = 10, relu,
target sum He2 / sqrt(2), rescaled to the sphere after each step.  Contestants take turns; processor time is counted.

    python benchmarks/network_speed.py
"""

import math
import statistics
import sys
import time

import seqindex as sx

LENGTH, DIM, RATE = 10, 1000, 1e-3
LEAST = {"tied": 3000, "untied, rows": 1000, "untied, joint": 1000}


def peer(kind: str, steps: int) -> None:
    """The plain loop."""
    import torch

    star = torch.randn(DIM)
    star *= math.sqrt(DIM) / star.norm()
    shape = (DIM,) if kind == "tied" else (LENGTH, DIM)
    w = torch.randn(shape)
    w = w * math.sqrt(DIM) / w.norm(dim=-1, keepdim=True)
    w.requires_grad_(True)
    norm = w.detach().norm()
    for _ in range(steps):
        x = torch.randn(LENGTH, DIM) / math.sqrt(DIM)
        y = ((x @ star) ** 2 - 1.0).sum() / math.sqrt(2.0)
        u = (x @ w if kind == "tied" else (x * w).sum(-1)).sum() / math.sqrt(LENGTH)
        loss = (y - torch.relu(u)) ** 2
        loss.backward()
        with torch.no_grad():
            w -= RATE * w.grad
            w *= norm / w.norm() if kind != "untied, rows" else math.sqrt(DIM) / w.norm(dim=-1, keepdim=True)
            w.grad.zero_()


def chain(kind: str, steps: int) -> None:
    """The reduced chain, 64 replicas."""
    student = sx.TiedNetwork(LENGTH) if kind == "tied" else sx.UntiedNetwork(LENGTH, sphere=kind.split(", ")[1])
    problem = sx.Problem(sx.Target("sum(He2(z))/sqrt(2)", LENGTH), student)
    sx.sgd(problem, DIM, RATE, steps, replicas=64, records=[steps], workers=1, progress=False)


def speed(run, kind: str, steps: int, replicas: int) -> float:
    """Steps of a replica per second of processor time."""
    begin = time.process_time()
    run(kind, steps)
    return steps * replicas / (time.process_time() - begin)


def main() -> int:
    """Print speeds and ratios; 0 where each is as large as promised."""
    try:
        import torch
    except ImportError:
        print("PyTorch is not installed; pip install 'seqindex[torch]'", file=sys.stderr)
        return 2
    torch.set_num_threads(1)
    kept = True
    for kind, least in LEAST.items():
        chain(kind, 1)
        peer(kind, 10)
        pairs = [(speed(peer, kind, 2000, 1), speed(chain, kind, 40_000, 64)) for _ in range(5)]
        slow, fast = (statistics.median(values) for values in zip(*pairs, strict=True))
        kept &= fast / slow >= least
        print(f"{kind:15s} PyTorch {slow:8.3g}  chain {fast:8.3g} steps/s: {fast / slow:6.0f} times (at least {least})")
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
