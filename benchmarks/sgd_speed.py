"""How much faster than PyTorch is SGD here, on one core, side by side in one run?

Peers at d = 1000: a plain autograd loop of one sample a step, operation by operation that of the paper's released code
(float32, PyTorch's default, as there), and PyTorch over 64 replicas with the gradient in closed form (float64, the
arithmetic of the engines here); each is timed in the other precision too.  Length 2, softmax attention with opposite
encodings, all four outputs, one sample a step, rescaled to the sphere.

    python benchmarks/sgd_speed.py [--loss norm] [--tiny]

First the contestants run the same number of steps from the same start: their mean overlaps must agree within five
standard errors.  Then they take turns; processor time is counted.  ``--tiny`` does all of it in a moment and expects no
speed.
"""

import argparse
import math
import sys

import numpy as np

from seqindex.sgd.bench import Row, benchmark, overlaps
from seqindex.sgd.peers import PEERS, has_torch

AUTOGRAD, CLOSED = "PyTorch, autograd, float32", "PyTorch, 64 replicas, float64"
LEAST = [
    ("reduced, d = 1e3", AUTOGRAD, 8000),
    ("reduced, d = 1e3", CLOSED, 600),
    ("reduced, d = 1e9", AUTOGRAD, 8000),
    ("reduced, d = 1e9", CLOSED, 600),
    ("explicit, d = 1e3", AUTOGRAD, 25),
]


def check_overlaps(steps: int, loss: str) -> bool:
    """Print mean overlaps and whether all agree with the reduced chain's."""
    found = overlaps(steps, loss=loss)
    chain = found["reduced, d = 1e3"]
    agree = True
    print(f"Mean overlap after {steps} steps, and its distance from the reduced chain's in standard errors")
    for name, m in found.items():
        error = chain.std(ddof=1) * math.sqrt(1 / len(m) + 1 / len(chain))
        off = abs(m.mean() - chain.mean()) / error
        agree &= bool(np.isfinite(m).all() and off <= 5)
        print(f"  {name:30s}{m.mean():9.4f}{off:6.1f}")
    return agree


def show_speed(rows: list[Row]) -> None:
    """Print steps per second and how many times faster each contestant is than each peer."""
    print(f"\n  {'':30s}{'steps/s':>10s}" + "".join(f"{'x ' + name.removeprefix('PyTorch, '):>25s}" for name in PEERS))
    for row in rows:
        print(f"  {row.name:30s}{row.steps_per_second:10.3g}" + "".join(f"{x:25.4g}" for x in row.times.values()))


def check_speed(rows: list[Row]) -> bool:
    """Print whether each ratio is as large as promised."""
    times = {row.name: row.times for row in rows}
    print()
    for name, peer, least in LEAST:
        verdict = "yes" if times[name][peer] >= least else "NO"
        print(f"  {name}: {times[name][peer]:.0f} times {peer}; at least {least}: {verdict}")
    return all(times[name][peer] >= least for name, peer, least in LEAST)


def main() -> int:
    """Run the benchmark; 0 where overlaps agree and, unless tiny, the speeds are as promised."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--loss", choices=["square", "norm"], default="square")
    parser.add_argument("--tiny", action="store_true")
    arguments = parser.parse_args()
    if not has_torch():
        print("PyTorch is not installed; pip install 'seqindex[torch]'", file=sys.stderr)
        return 2
    agree = check_overlaps(20 if arguments.tiny else 2000, arguments.loss)
    rows = benchmark(1e-3, 1, arguments.loss) if arguments.tiny else benchmark(2.0, 5, arguments.loss)
    show_speed(rows)
    kept = arguments.tiny or check_speed(rows)
    return 0 if agree and kept else 1


if __name__ == "__main__":
    sys.exit(main())
