"""How much of the time of a study of one-second points goes into anything but the simulation?

Runs the same points once through the engine of ``seqindex run`` in one worker process and once as plain calls in this
process, and compares.  The start of the worker, about two seconds, counts: take many points.  Exit code 1 where the
overhead is above 5 per cent.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time

import seqindex as sx
from seqindex.study.run import run_study
from seqindex.study.spec import parse_study, points

TEXT = """
target: sum(He2(z))/sqrt(2)
length: 2
dim: 10**6
learning_rate: 0.1
steps: {steps}
replicas: 64
record: {{overlaps: 100}}
sweep: {{grid: {{seed: range({count})}}}}
"""


def main() -> int:
    """Print the times and the overhead."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=int, default=40)
    parser.add_argument("--steps", type=int, default=10**6)
    arguments = parser.parse_args()
    study = parse_study(TEXT.format(steps=arguments.steps, count=arguments.points).replace("10**6", "1000000"))
    every = points(study)
    plain = begin = 0.0
    for index, point in enumerate(every):
        if index == 1:
            begin = time.perf_counter()  # the first one compiles
        sx.sgd(
            point.problem(),
            10**6,
            0.1,
            arguments.steps,
            replicas=64,
            seed=point.seed,
            records=100,
            workers=1,
            progress=False,
        )
    plain = (time.perf_counter() - begin) / (len(every) - 1) * len(every)
    with tempfile.TemporaryDirectory() as folder:
        begin = time.perf_counter()
        run_study(study, folder, workers=1, progress=False)
        whole = time.perf_counter() - begin
    overhead = whole / plain - 1.0
    print(f"{len(every)} points: plain calls {plain:.2f} s, study {whole:.2f} s, overhead {100 * overhead:.1f} %")
    return int(overhead > 0.05)


if __name__ == "__main__":
    sys.exit(main())
