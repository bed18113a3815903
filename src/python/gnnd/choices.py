"""What an import is asked for beside a graph, as the fields of its request."""

from __future__ import annotations

import numbers
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gnnd.connection import request_id
from gnnd.dataset import NOUNS
from gnnd.errors import Violation, wrong
from gnnd.v1 import dataset_service_pb2 as pb
from gnnd.v1 import types_pb2 as types
from gnnd.words import one_of, shown

_DTYPES = {None: 0, "float32": 1, "float16": 2}
_MADE = {"degree": pb.MADE_FEATURES_DEGREE, "identity": pb.MADE_FEATURES_IDENTITY}


def request_of(name: Any, source: str, choices: Mapping[str, Any]) -> pb.ImportDatasetRequest:
    """The request of an import. Raises `InvalidRequest` with all that is wrong of its choices.

    `choices` are `feature_dtype`, `task`, `split`, `directed`, `link`, `ignored_columns`,
    `made_features`, `random_split` and `reverse`, each of which may be None.
    """
    wrongs: list[Violation] = []
    fields: dict[str, Any] = {}
    for key, convert in (
        ("feature_dtype", _dtype),
        ("task", _task),
        ("split", str),
        ("made_features", _made),
        ("random_split", _random_split),
        ("ignored_columns", _columns),
        ("directed", bool),
        ("link", bool),
        ("reverse", bool),
    ):
        if choices.get(key) is None:
            continue
        try:
            fields[key] = convert(choices[key])
        except _WrongChoice as error:
            wrongs.append(Violation(key, str(error)))
    if not isinstance(name, str):
        wrongs.append(Violation("name", f"{shown(name)}: expected a text"))
    if wrongs:
        raise wrong("an import", *wrongs)
    return pb.ImportDatasetRequest(
        dataset_id=name, source=source, request_id=request_id(), **fields
    )


class _WrongChoice(Exception):
    """What a choice is, and what was expected."""


def _dtype(dtype: Any) -> Any:
    """Of a name, or of numpy's type."""
    try:
        name = np.dtype(dtype).name
    except TypeError:
        name = str(dtype).removeprefix("torch.")
    if name not in _DTYPES:
        raise _WrongChoice(f"{shown(dtype)}: expected 'float32' or 'float16'")
    return _DTYPES[name]


def _task(task: Any) -> Any:
    name = str(task).upper().replace("-", "_")
    if name not in NOUNS:
        is_other = any(word in name for word in ("LINK", "EDGE", "GRAPH"))
        only = "; all are of nodes: a job learns links by itself (task=gnnd.Links())"
        only = only if is_other else ""
        raise _WrongChoice(one_of(task, NOUNS) + only)
    return types.DatasetTask.Value(f"DATASET_TASK_{name}")


def _made(made: Any) -> Any:
    if str(made).lower() not in _MADE:
        raise _WrongChoice(one_of(made, _MADE))
    return _MADE[str(made).lower()]


def _random_split(given: Any) -> pb.RandomSplit:
    """Of shares for validation and test, and maybe a seed."""
    parts = list(given) if isinstance(given, Sequence) and not isinstance(given, str) else []
    is_right = len(parts) in (2, 3) and all(
        isinstance(part, numbers.Real) and not isinstance(part, bool) for part in parts
    )
    if not is_right:
        expected = "shares for validation and test, (0.2, 0.2), and maybe a seed, (0.2, 0.2, 7)"
        raise _WrongChoice(f"{shown(given)}: expected {expected}")
    validation, test, *seeds = parts
    if min(validation, test) < 0 or not validation + test < 1:
        raise _WrongChoice(f"{shown(given)}: expected shares of 0 or more, together less than 1")
    seed = seeds[0] if seeds else 0
    if seed != int(seed) or not 0 <= seed < 1 << 32:
        raise _WrongChoice(f"{shown(given)}: expected a seed from 0 to {(1 << 32) - 1}")
    return pb.RandomSplit(validation=validation, test=test, random_seed=int(seed))


def _columns(names: Any) -> list[str]:
    if isinstance(names, (str, bytes)) or not isinstance(names, Sequence):
        raise _WrongChoice(f"{shown(names)}: expected a list of names of columns")
    return [str(name) for name in names]
