"""Tables as the Parquet files that the daemon reads: linked where there are files, else written."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from gnnd.errors import ImportFailed, Violation, missing, wrong
from gnnd.saved import reading
from gnnd.words import shown

#: Rows of a piece that is written, and of a row group.
PIECE_ROWS = 1 << 16


def put_file(folder: Path, name: str, source: str | os.PathLike[str]) -> None:
    """Makes `NAME.parquet` of a Parquet file: a hard link, or a copy on another disk."""
    file = folder / f"{name}.parquet"
    with reading(source):
        open(source, "rb").close()
    try:
        os.link(source, file)
    except OSError:
        shutil.copyfile(source, file)
        file.chmod(0o644)


def put_frame(folder: Path, name: str, frame: Any) -> None:
    """Makes `NAME.parquet` of a frame of pandas or polars, a pyarrow table or columns by name."""
    try:
        import pyarrow as pa
    except ImportError:
        raise missing("pyarrow", "pandas", "import_frames") from None
    file = folder / f"{name}.parquet"
    table = frame.to_arrow() if hasattr(frame, "to_arrow") else frame
    if isinstance(table, dict):
        with _arrow_errors(name):
            table = pa.table(table)
    if isinstance(table, pa.Table):
        with _arrow_errors(name):
            _write(file, table.schema, table.to_batches(max_chunksize=PIECE_ROWS))
        return
    if not hasattr(table, "iloc"):
        text = f"{shown(frame)}: expected a frame of pandas or polars, or a pyarrow table"
        raise wrong("import_frames()", Violation(name, text))

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
        _write(file, schema, pieces(schema))


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


def _write(file: Path, schema: Any, batches: Any) -> None:
    """Row groups of at most `PIECE_ROWS` rows."""
    from pyarrow import parquet

    with parquet.ParquetWriter(file, schema, compression="snappy") as writer:
        for batch in batches:
            writer.write_batch(batch, row_group_size=PIECE_ROWS)
    file.chmod(0o644)
