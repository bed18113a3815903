"""Pickles of data: an unpickler that makes numbers, texts, containers and arrays, and runs no code.

A pickle names what it is made of; whatever is not on the list is refused by its name. Classes of
graph libraries become `Inert` objects, which keep the state that was stored and do nothing.
"""

from __future__ import annotations

import builtins
import collections
import pickle
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any, BinaryIO

import numpy as np


class Refused(pickle.UnpicklingError):
    """The pickle names something that is no data."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f"holds {name}, which is no data")


class Inert:
    """An object of a class that is not imported, with the state that was stored of it."""

    def __new__(cls, *_: Any, **__: Any) -> Inert:
        """With whatever arguments the class took."""
        return super().__new__(cls)

    def __init__(self, *_: Any, **__: Any) -> None:
        self.state: Any = getattr(self, "state", None)

    def __setstate__(self, state: Any) -> None:
        # (dict, slots) where a class has slots.
        self.state = state[0] if isinstance(state, tuple) and len(state) == 2 else state

    def get(self, name: str) -> Any:
        """A field of its state; None where there is none."""
        return self.state.get(name) if isinstance(self.state, Mapping) else None


def _matrix(kind: str) -> type[Inert]:
    return type(kind, (Inert,), {})


#: Matrices of SciPy, of which the state has data, indices, indptr and shape.
SCIPY = {kind: _matrix(kind) for kind in ("csr_matrix", "csc_matrix", "coo_matrix", "lil_matrix")}
_BUILTINS = (
    *("dict", "list", "set", "frozenset", "tuple", "slice", "range"),
    *("int", "float", "complex", "bool", "str", "bytearray"),
)
_NUMPY = (
    *("numpy.core.multiarray", "numpy._core.multiarray"),
    *("numpy.core.numeric", "numpy._core.numeric"),
)
_PLAIN: dict[tuple[str, str], Any] = {
    ("collections", "OrderedDict"): collections.OrderedDict,
    # What makes the missing value is dropped: it may be any function.
    ("collections", "defaultdict"): lambda *_: {},
    ("types", "SimpleNamespace"): SimpleNamespace,
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): np.dtype,
    ("_codecs", "encode"): lambda text, _encoding="latin1": text.encode("latin1"),
    ("copy_reg", "_reconstructor"): lambda kind, *_: kind.__new__(kind),
    ("copyreg", "_reconstructor"): lambda kind, *_: kind.__new__(kind),
}


def find(module: str, name: str) -> Any:
    """What a pickle of data may name. Raises `Refused`."""
    if (module, name) in _PLAIN:
        return _PLAIN[module, name]
    if module in ("builtins", "__builtin__") and name in _BUILTINS:
        return getattr(builtins, name)
    if module in _NUMPY and name in ("_reconstruct", "scalar", "_frombuffer"):
        # Numpy 2 calls what pickles name numpy.core by another name.
        core: Any = getattr(np, "_core", None) or np.core
        return getattr(core.multiarray if "multiarray" in module else core.numeric, name)
    if module.startswith("scipy.sparse") and name in SCIPY:
        return SCIPY[name]
    if module.startswith("networkx.") and name in ("Graph", "DiGraph"):
        return _matrix(name)
    raise Refused(f"{module}.{name}")


class DataUnpickler(pickle.Unpickler):
    """Loads what `find` lets pass."""

    def find_class(self, module: str, name: str) -> Any:
        """By `find`."""
        return find(module, name)


def load(file: BinaryIO, encoding: str = "latin1") -> Any:
    """One pickle of data; `latin1` reads those that Python 2 wrote of numpy's arrays."""
    return DataUnpickler(file, encoding=encoding).load()


def unpickler(found: Callable[[str, str], Any]) -> type[pickle.Unpickler]:
    """An unpickler that asks `found` first, which answers None for what it does not know."""

    class Wider(pickle.Unpickler):
        def find_class(self, module: str, name: str) -> Any:
            known = found(module, name)
            return find(module, name) if known is None else known

    return Wider
