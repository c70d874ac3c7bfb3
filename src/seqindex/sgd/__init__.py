"""Simulation: the exact reduced chain and explicit SGD.

The package is also the public function ``seqindex.sgd``: calling it calls ``seqindex.sgd.run.sgd``.
"""

import inspect
import sys
from types import ModuleType
from typing import Any


class _CallablePackage(ModuleType):
    """``import seqindex.sgd.run`` binds the name ``seqindex.sgd`` to this package, so the package answers calls."""

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        from seqindex.sgd.run import sgd

        return sgd(*args, **keywords)

    @property
    def __signature__(self) -> inspect.Signature:
        from seqindex.sgd.run import sgd

        return inspect.signature(sgd)


sys.modules[__name__].__class__ = _CallablePackage
