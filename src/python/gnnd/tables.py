"""Tables as the Parquet files that the daemon reads: linked where there are files, else written."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from gnnd.errors import ImportFailed, Violation, missing, wrong
from gnnd.saved import reading
from gnnd.values import as_array, lossy_float32
from gnnd.words import shown

#: Columns that are no features: their whole numbers stay what they are.
_KEPT = {"id", "label", "split", "source", "target"}
#: Rows of a piece that is written, and of a row group.
PIECE_ROWS = 1 << 16


def put_file(folder: Path, name: str, source: str | os.PathLike[str]) -> list[str]:
    """Makes `NAME.parquet` of a Parquet file: a hard link, or a copy on another disk."""
    if not isinstance(source, (str, os.PathLike)):
        text = f"{shown(source)}: expected the path of a Parquet file; import_frames takes frames"
        raise wrong("import_parquet()", Violation(name, text))
    file = folder / f"{name}.parquet"
    with reading(source):
        open(source, "rb").close()
    try:
        os.link(source, file)
    except OSError:
        shutil.copyfile(source, file)
        file.chmod(0o644)
    return []


def put_frame(folder: Path, name: str, frame: Any) -> list[str]:
    """Makes `NAME.parquet` of a frame of pandas or polars, a pyarrow table or columns by name.

    Answers what its person should know of it.
    """
    try:
        import pyarrow as pa
    except ImportError:
        raise missing("pyarrow", "pandas", "import_frames") from None
    file = folder / f"{name}.parquet"
    table = frame.to_arrow() if hasattr(frame, "to_arrow") else frame
    if isinstance(table, dict):
        with _arrow_errors(name):
            table = pa.table({_text_of(key): column for key, column in table.items()})
    if isinstance(table, pa.Table):
        with _arrow_errors(name):
            return _write(file, table.schema, table.to_batches(max_chunksize=PIECE_ROWS))
    if not hasattr(table, "iloc") or not hasattr(table, "columns"):
        text = f"{shown(frame)}: expected a frame of pandas or polars, or a pyarrow table"
        raise wrong("import_frames()", Violation(name, text))
    table = _with_plain_columns(name, _with_names(name, table))

    def pieces(schema: Any) -> Iterator[Any]:
        for start in range(0, len(table), PIECE_ROWS):
            piece = table.iloc[start : start + PIECE_ROWS]
            yield from pa.Table.from_pandas(piece, schema, preserve_index=False).to_batches()

    fields: list[Any] = []
    for at, column in enumerate(table.columns):
        # One by one: pyarrow says of which value it cannot tell the type, not of which column.
        with _arrow_errors(f"{name}.{column}"):
            fields += pa.Schema.from_pandas(table.iloc[:, [at]], preserve_index=False)
    with _arrow_errors(name):
        schema = pa.schema(fields)
        return _write(file, schema, pieces(schema))


def _with_plain_columns(name: str, table: Any) -> Any:
    """A frame of pandas whose columns are of types that pyarrow has: none sparse, no tensors."""
    plain = {}
    for at, column in enumerate(table.columns):
        values = table.iloc[:, at]
        dtype = values.dtype
        kind = getattr(dtype, "kind", "O")
        if hasattr(values, "sparse"):
            plain[column] = values.sparse.to_dense()
        elif kind == "c":
            text = f"is of type {dtype}: expected numbers, or texts"
            raise wrong("import_frames()", Violation(f"{name}.{column}", text))
        elif kind == "f" and dtype.itemsize > 8:
            plain[column] = values.astype(np.float64)
        elif kind == "O" and any(hasattr(value, "detach") for value in values.head(PIECE_ROWS)):
            plain[column] = values.map(_without_torch)
    return table.assign(**plain) if plain else table


def _without_torch(value: Any) -> Any:
    """A number, or an array, of a tensor."""
    if not hasattr(value, "detach"):
        return value
    array = as_array(value)
    return array[()] if array.ndim == 0 else array


def _with_names(name: str, table: Any) -> Any:
    """A frame of pandas whose columns are called by texts, each by its own."""
    columns = list(table.columns)
    if getattr(table.columns, "nlevels", 1) > 1 or any(isinstance(each, tuple) for each in columns):
        levels = getattr(table.columns, "nlevels", len(columns[0]))
        text = (
            f"its columns are named on {levels} levels, such as {shown(columns[0])}: expected one; "
            "frame.droplevel(0, axis=1) leaves the last, frame.columns.map('_'.join) joins them"
        )
        raise wrong("import_frames()", Violation(name, text))
    texts = [_text_of(column) for column in columns]
    twice = sorted({text for text in texts if texts.count(text) > 1})
    if twice:
        text = f"{len(twice)} names are those of several columns: {', '.join(twice[:9])}"
        raise wrong("import_frames()", Violation(name, f"{text}: expected each once"))
    if name == "nodes" and "id" not in texts and table.index.name == "id":
        return _with_names(name, table.reset_index())
    return table if texts == columns else table.set_axis(texts, axis=1)


def _text_of(column: Any) -> str:
    """A column's name: numbers, as `pandas.DataFrame(matrix)` has them, are their texts."""
    return column.decode("utf-8", "replace") if isinstance(column, bytes) else str(column)


@contextmanager
def _arrow_errors(what: str) -> Iterator[None]:
    """Errors of pyarrow's say which column or byte, and not of which file or frame."""
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OSError, TypeError, ValueError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # Of the disk that is written to; what is damaged has no number.
        said = "; ".join(str(part).strip() for part in error.args)
        raise ImportFailed("pyarrow cannot read it", violations=[Violation(what, said)]) from error


def _write(file: Path, schema: Any, batches: Any) -> list[str]:
    """Row groups of at most `PIECE_ROWS` rows. Answers which columns float32 has not."""
    from pyarrow import parquet

    rounded: dict[str, tuple[int, str]] = {}
    row = 0
    with parquet.ParquetWriter(file, schema, compression="snappy") as writer:
        for batch in batches:
            writer.write_batch(batch, row_group_size=PIECE_ROWS)
            for column, count, first in _rounded(batch):
                before, what = rounded.get(column, (0, f"{first[1]} of row {row + first[0] + 1}"))
                rounded[column] = (before + count, what)
            row += batch.num_rows
    file.chmod(0o644)
    return [
        f"{file.stem}.{column}: {count:,} whole numbers beyond 16,777,216 are rounded to float32, "
        f"such as {what}"
        for column, (count, what) in rounded.items()
    ]


def _rounded(batch: Any) -> Iterator[tuple[str, int, tuple[int, int]]]:
    """Columns of features or weights with whole numbers that float32 has not, and the first."""
    import pyarrow as pa

    for field, values in zip(batch.schema, batch.columns, strict=True):
        is_kept = field.name in _KEPT or field.name.startswith("label_")
        if is_kept or not pa.types.is_integer(field.type) or values.null_count > 0:
            continue
        numbers = values.to_numpy(zero_copy_only=False)
        found = lossy_float32(numbers)
        if found is not None:
            count, at = found
            yield field.name, count, (at, int(numbers[at]))
