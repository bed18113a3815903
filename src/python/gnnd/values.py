"""Values of any library as arrays of numpy, by their own types and never by their Python class."""

from __future__ import annotations

import operator
import os
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

import gnnd_formats
from gnnd.words import shown

#: What `as_array` names a row by.
Place = Callable[[int], str]
#: Texts that stand for a label that is not known, as tables and numpy write them.
UNKNOWN = frozenset({"", "nan", "NaN", "NAN", "None", "NA", "N/A", "n/a", "<NA>", "null", "NaT"})
#: Whole numbers up to it are all in float32, and those up to the second one in float64.
WHOLE_FLOAT32, WHOLE_FLOAT64 = 1 << 24, 1 << 53
#: Types, by their names, whose one value is that there is none.
_MISSING = ("NAType", "NaTType", "MaskedConstant")
#: Elements of an array that are looked at together, to bound what that takes.
_PIECE = 1 << 22


class Unfit(ValueError):
    """Something of which no array is made; its text says what it is and what was expected."""


def row_place(at: int) -> str:
    """How a row is called that has no name."""
    return f"row {at}"


def as_array(values: Any, place: Place = row_place) -> np.ndarray:
    """Numbers over the same memory where there are any, or [N] texts as objects, None for none.

    Takes what numpy, torch, pandas, polars, pyarrow and scipy.sparse have, and lists; what is
    missing among numbers is NaN. Raises `Unfit`.
    """
    found = masked_array(values, place)
    return _with_nan(found) if isinstance(found, np.ma.MaskedArray) else found


def masked_array(values: Any, place: Place = row_place) -> np.ndarray:
    """The same, but whole numbers some of which are missing stay whole, and are masked there."""
    found = _unwrapped(values, place)
    kind = found.dtype.kind
    if isinstance(found, np.ma.MaskedArray):
        if kind not in "biuf" or not np.ma.is_masked(found):
            return _of_rows(np.ma.filled(found.astype(object), None), place)
        return found if kind in "biu" else _with_nan(found)
    if kind == "f" and found.dtype.itemsize > 8:
        return found.astype(np.float64)
    if kind in "biuf":
        return found
    if kind in "SUTO" and found.dtype.names is None:
        return _of_rows(found, place)
    raise Unfit(f"they are of type {found.dtype}: expected numbers")


def _with_nan(found: Any) -> np.ndarray:
    """Of a masked array of numbers."""
    dtype = found.dtype if found.dtype.kind == "f" else np.dtype(np.float64)
    values: np.ndarray = np.ma.getdata(found).astype(dtype)
    values[np.ma.getmaskarray(found)] = np.nan
    return values


def _of_rows(found: np.ndarray, place: Place) -> np.ndarray:
    """Of an array of objects, or of texts."""
    if found.ndim == 0:
        raise Unfit(f"{shown(found[()])}: expected an array")
    if found.ndim > 1 and found.shape[1] == 1:
        found = found.reshape(len(found))
    if found.ndim == 1:
        return of_values(found.tolist(), place)
    return of_values([list(row) for row in found], place)


def _unwrapped(values: Any, place: Place) -> np.ndarray:
    """An array of any type."""
    if isinstance(values, np.ndarray):
        return values
    if hasattr(values, "detach"):
        return _of_torch(values)
    if is_sparse(values):
        return _dense(values)
    if isinstance(values, (str, bytes, os.PathLike)):
        raise Unfit(f"{shown(values)}: expected an array; numpy.load reads one of a .npy file")
    if isinstance(values, (set, frozenset, Mapping)):
        raise Unfit(f"a {type(values).__name__} has no order: expected an array")
    if hasattr(values, "iloc") and hasattr(values, "columns"):
        columns = [as_array(values.iloc[:, at], place) for at in range(values.shape[1])]
        if any(column.dtype == object for column in columns):
            at = next(at for at, column in enumerate(columns) if column.dtype == object)
            raise Unfit(f"column {shown(values.columns[at])} has texts: expected numbers")
        return np.stack(columns, axis=1) if columns else np.empty(values.shape)
    try:
        if isinstance(values, (list, tuple)):
            return _of_list(values, place)
        # What pandas does for itself knows its own types; others know numpy's protocol.
        is_own = hasattr(values, "to_numpy") and not type(values).__module__.startswith("pyarrow")
        found = values.to_numpy() if is_own else np.asarray(values)
    except Unfit:
        raise
    except (TypeError, ValueError, RuntimeError) as error:
        raise Unfit(f"numpy takes no {type(values).__name__}: {_line(error)}") from error
    if not isinstance(found, np.ndarray) or (found.ndim == 0 and found.dtype == object):
        raise Unfit(f"{shown(values)}: expected an array")
    return found


def _of_list(values: Any, place: Place) -> np.ndarray:
    """Of numbers as numpy has them; one by one where there are others."""
    try:
        found = np.asarray(values)
    except (TypeError, ValueError, RuntimeError, OverflowError):
        return of_values(list(values), place)
    if found.dtype.kind in "biu" or (found.dtype.kind == "f" and not _has_large(values)):
        return found
    return of_values(list(values), place) if len(values) > 0 else found


def _has_large(values: Any) -> bool:
    """Whether a whole number is among them that float64, which numpy took for all, may lack."""
    return any(type(value) is int and abs(value) > WHOLE_FLOAT64 for value in values)


def _of_torch(tensor: Any) -> np.ndarray:
    """Of a tensor on any device, sparse, lazy or of a type that numpy lacks."""
    tensor = tensor.detach()
    if is_sparse(tensor):
        return _dense(tensor)
    if str(tensor.device) == "meta":
        raise Unfit("the tensor is on the device meta, and has no values")
    if getattr(tensor, "is_quantized", False):
        tensor = tensor.dequantize()
    name = str(tensor.dtype)
    if name == "torch.bfloat16" or name.startswith("torch.float8"):
        tensor = tensor.float()
    tensor = tensor.cpu()
    if hasattr(tensor, "resolve_neg"):
        tensor = tensor.resolve_conj().resolve_neg()
    try:
        found: np.ndarray = tensor.numpy()
    except (TypeError, RuntimeError) as error:
        raise Unfit(f"they are of type {name}: {_line(error)}") from error
    return found


def is_sparse(values: Any) -> bool:
    """Whether it is a sparse array of scipy, a tensor of torch or torch_sparse, or a file's."""
    if isinstance(values, gnnd_formats.Sparse):
        return True
    layout = getattr(values, "layout", None)
    if layout is not None and "strided" not in str(layout) and hasattr(values, "to_dense"):
        return True
    if hasattr(values, "sparse_sizes") and hasattr(values, "to_dense"):
        return True
    return hasattr(values, "nnz") and hasattr(values, "toarray") and hasattr(values, "tocoo")


def _dense(values: Any) -> np.ndarray:
    """Of what is sparse. Raises `Unfit` where it has no room in the host's free memory."""
    sizes = values.sparse_sizes() if hasattr(values, "sparse_sizes") else values.shape
    rows, columns = (*sizes, 1, 1)[:2]
    needed, free = 4 * int(rows) * int(columns), _free_bytes()
    if needed > free:
        gib = 1 << 30
        raise Unfit(
            f"they are sparse, [{rows}, {columns}]: in full they take {needed / gib:.1f} GiB, and "
            f"{free / gib:.1f} GiB of memory are free; give fewer columns, such as of "
            "sklearn.decomposition.TruncatedSVD"
        )
    if hasattr(values, "blocks"):
        return np.concatenate(list(values.blocks()))
    if hasattr(values, "toarray"):
        # Wide types would take twice the memory, and are float32 once they are imported.
        found: np.ndarray = (values.astype(np.float32) if _is_wide(values) else values).toarray()
        return found
    return _of_torch((values.float() if _is_wide(values) else values).to_dense())


def _is_wide(values: Any) -> bool:
    return str(getattr(values, "dtype", "")).removeprefix("torch.") == "float64"


def _free_bytes() -> int:
    """Memory that this host could give now; where it does not say, as much as there may be."""
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            lines = dict(line.split(":", 1) for line in file)
        return int(lines["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):
        return 1 << 62


def of_values(values: list[Any], place: Place = row_place) -> np.ndarray:
    """One row of each value: numbers, rows of numbers, or texts (as objects), None for missing.

    Numbers keep a type that has all of them. Raises `Unfit` with the place of what does not fit.
    """
    found = [_single(value, partial(place, at)) for at, value in enumerate(values)]
    there = [value for value in found if value is not None]
    if any(isinstance(value, str) for value in there):
        return _texts(found, place)
    if any(isinstance(value, np.ndarray) for value in there):
        return _vectors(found, place)
    is_none = np.array([value is None for value in found], bool)
    numbers = np.array([0 if value is None else value for value in found], _type_of(there))
    if not is_none.any():
        return numbers
    if numbers.dtype.kind == "f":
        numbers[is_none] = np.nan
        return numbers
    return np.ma.MaskedArray(numbers, is_none)


def _texts(found: list[Any], place: Place) -> np.ndarray:
    # NaN among texts is how pandas writes that one is missing.
    for at, value in enumerate(found):
        if isinstance(value, str) or value is None or _is_nan(value):
            continue
        raise Unfit(f"{place(at)} has {_shown(value)} among texts: expected all texts or none")
    texts = np.empty(len(found), object)
    texts[:] = [value if isinstance(value, str) else None for value in found]
    return texts


def _vectors(found: list[Any], place: Place) -> np.ndarray:
    first = next(at for at, value in enumerate(found) if isinstance(value, np.ndarray))
    width = found[first].shape
    for at, value in enumerate(found):
        if value is None or _is_nan(value):
            continue
        if not isinstance(value, np.ndarray) or value.dtype == object:
            raise Unfit(f"{place(at)} has {_shown(value)}: expected {width[0]} numbers")
        if value.shape != width:
            what = f"{place(first)} has {width[0]}"
            raise Unfit(f"{place(at)} has {value.size} numbers, and {what}")
    rows = [value if isinstance(value, np.ndarray) else None for value in found]
    dtype = np.result_type(*{row.dtype for row in rows if row is not None})
    if any(row is None for row in rows) and dtype.kind != "f":
        dtype = np.dtype(np.float64)
    nothing = np.full(width, np.nan if dtype.kind == "f" else 0)
    return np.stack([nothing if row is None else row for row in rows]).astype(dtype)


def _is_nan(value: Any) -> bool:
    return isinstance(value, (float, np.floating)) and bool(np.isnan(value))


def is_missing(value: Any) -> bool:
    """Whether it is None, NaN, or what pandas and numpy have for such."""
    return value is None or type(value).__name__ in _MISSING or _is_nan(value)


def _single(value: Any, place: Callable[[], str]) -> Any:
    """A number of numpy's or Python's, a text, a vector, or None for what is missing."""
    if value is None or type(value).__name__ in _MISSING:
        return None
    if isinstance(value, (str, bool, int, float)):
        return str(value) if isinstance(value, np.str_) else value
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, np.generic) and value.dtype.kind in "biuf":
        return value
    if hasattr(value, "__len__") or hasattr(value, "detach"):
        return _row(value, place)
    for method, convert in (("__index__", operator.index), ("__float__", float)):
        if hasattr(value, method) and not isinstance(value, (complex, np.complexfloating)):
            return convert(value)
    raise Unfit(f"{place()} has {_shown(value)}: expected a number or a text")


def _row(value: Any, place: Callable[[], str]) -> Any:
    """Of a tensor or an array: the number that it is, or the vector."""
    try:
        row = as_array(value)
    except Unfit as error:
        raise Unfit(f"{place()}: {error}") from error
    if row.ndim == 0:
        return row[()]
    if row.ndim > 1:
        raise Unfit(f"{place()} has an array of shape {row.shape}: expected a row of numbers")
    return row


def _type_of(numbers: list[Any]) -> np.dtype:
    """A type that has all the numbers: numpy's own would make floats of large whole ones."""
    kinds = {value.dtype if isinstance(value, np.generic) else type(value) for value in numbers}
    types = [np.dtype(kind) for kind in kinds] or [np.dtype(np.float64)]
    whole = [value for value in numbers if np.dtype(type(value)).kind in "biu"]
    low, high = (int(min(whole)), int(max(whole))) if whole else (0, 0)
    is_whole = all(each.kind in "biu" for each in types)
    if is_whole and all(each.kind == "b" for each in types):
        return np.dtype(bool)
    if not is_whole:
        dtype = np.result_type(*types)
        if max(-low, high) > WHOLE_FLOAT64:
            raise Unfit(f"there are {low if -low > high else high} and fractions: no type has both")
        return dtype
    if low >= -(1 << 63) and high < 1 << 63:
        return np.dtype(np.int64)
    if low >= 0 and high < 1 << 64:
        return np.dtype(np.uint64)
    raise Unfit(f"there are whole numbers from {low} to {high}: expected such of 64 bits")


def _shown(value: Any) -> str:
    """Without numpy's types, which are no part of what a person gave."""
    return shown(value.tolist() if isinstance(value, (np.generic, np.ndarray)) else value)


def _line(error: Exception) -> str:
    return str(error).strip().split("\n")[0]


def lossy_float32(array: np.ndarray) -> tuple[int, int] | None:
    """Of whole numbers: how many float32 lacks, and where the first is in the flat array."""
    if array.dtype.kind not in "iu" or array.dtype.itemsize < 4:
        return None
    return first_of(array, _is_rounded)


def _is_rounded(whole: np.ndarray) -> Any:
    """Whether a number has more significant bits than float32's 24."""
    if whole.dtype.kind == "i":
        signed = whole.astype(np.int64)
        sizes = np.where(signed < 0, -signed, signed).view(np.uint64)
    else:
        sizes = whole.astype(np.uint64)
    lowest_bits = np.maximum(sizes & (~sizes + np.uint64(1)), np.uint64(1))
    return sizes // lowest_bits >= WHOLE_FLOAT32


def beyond_float32(array: np.ndarray) -> tuple[int, int] | None:
    """Of float64: how many numbers become infinite in float32, and where the first is."""
    if array.dtype.kind != "f" or array.dtype.itemsize <= 4:
        return None
    most = float(np.finfo(np.float32).max)
    return first_of(array, lambda piece: np.isfinite(piece) & (np.abs(piece) > most))


def first_of(array: np.ndarray, wrong: Callable[[np.ndarray], Any]) -> tuple[int, int] | None:
    """How many elements are `wrong`, and where the first is in the flat array; piece by piece."""
    count, first = 0, -1
    rows = max(1, _PIECE // max(1, array[:1].size))
    for start in range(0, len(array), rows):
        found = np.flatnonzero(wrong(array[start : start + rows]))
        if found.size > 0 and count == 0:
            first = start * array[:1].size + int(found[0])
        count += found.size
    return (count, first) if count > 0 else None
