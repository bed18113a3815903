"""The reader of a job that lends batches, in native code: `gnnd_reader.so` by ctypes."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from gnnd.errors import GnndError

_MAX_HOPS = 8
_ERROR_BYTES = 1024
_U64 = ctypes.c_uint64


class Facts(ctypes.Structure):
    """The facts of a job, as `native/reader/gnnd_reader.h` has them."""

    _fields_ = [
        ("batches_per_epoch", _U64),
        ("epochs", _U64),
        ("num_nodes", _U64),
        ("num_features", _U64),
        ("feature_bytes", _U64),
    ]


class Hop(ctypes.Structure):
    """Sizes of one hop of a batch."""

    _fields_ = [("num_dst", _U64), ("num_src", _U64), ("num_edges", _U64)]


class Batch(ctypes.Structure):
    """A batch that is lent."""

    _fields_ = [
        ("epoch", _U64),
        ("index", _U64),
        ("num_seeds", _U64),
        ("num_nodes", _U64),
        ("num_edges", _U64),
        ("num_hops", _U64),
        ("weighted", _U64),
        ("shared", _U64),
        ("num_pairs", _U64),
        ("num_negatives", _U64),
        ("num_types", _U64),
        ("num_blocks", _U64),
        ("all_hops", Hop * _MAX_HOPS),
    ]

    @property
    def hops(self) -> list[Hop]:
        """Those that it has, from the seeds outward."""
        return list(self.all_hops[: self.num_hops])


class TypeNodes(ctypes.Structure):
    """How many nodes of a type a batch has."""

    _fields_ = [("num_nodes", _U64), ("num_seeds", _U64)]


class Block(ctypes.Structure):
    """Sizes of one hop along one relation."""

    _fields_ = [
        ("hop", _U64),
        ("relation", _U64),
        ("src_type", _U64),
        ("dst_type", _U64),
        ("num_dst", _U64),
        ("num_src", _U64),
        ("num_edges", _U64),
    ]


class Edges(ctypes.Structure):
    """A graph's edges and their numbers (gnnd.edges)."""

    _fields_ = [
        ("indptr", ctypes.c_void_p),
        ("sources", ctypes.c_void_p),
        ("numbers", ctypes.c_void_p),
        ("num_nodes", _U64),
    ]


class Table(ctypes.Structure):
    """Rows of nodes at one address, and where the batch's go."""

    _fields_ = [
        ("rows", ctypes.c_void_p),
        ("num_rows", _U64),
        ("row_bytes", _U64),
        ("out", ctypes.c_void_p),
    ]


class _Arrays(ctypes.Structure):
    _fields_ = [
        ("tables", ctypes.c_void_p),
        ("num_tables", _U64),
        ("features", ctypes.c_void_p),
        ("nodes", ctypes.c_void_p),
        ("edges", ctypes.c_void_p),
        ("weights", ctypes.c_void_p),
        ("graph", ctypes.c_void_p),
        ("edge_numbers", ctypes.c_void_p),
    ]


class TypeArrays(ctypes.Structure):
    """Where nodes of a type go, and rows of them."""

    _fields_ = [("tables", ctypes.c_void_p), ("num_tables", _U64), ("nodes", ctypes.c_void_p)]


class RelationArrays(ctypes.Structure):
    """Where edges of a relation go, and their numbers in its graph (`Edges`)."""

    _fields_ = [
        ("edges", ctypes.c_void_p),
        ("graph", ctypes.c_void_p),
        ("edge_numbers", ctypes.c_void_p),
    ]


class _HopArrays(ctypes.Structure):
    _fields_ = [
        ("indptr", ctypes.c_void_p),
        ("src", ctypes.c_void_p),
        ("weights", ctypes.c_void_p),
        ("graph", ctypes.c_void_p),
        ("edge_numbers", ctypes.c_void_p),
    ]


class _PairArrays(ctypes.Structure):
    _fields_ = [
        ("items", ctypes.c_void_p),
        ("ends", ctypes.c_void_p),
        ("negatives", ctypes.c_void_p),
    ]


class Gone(GnndError):
    """The lender of the batches has gone: its job ended, or it is being replaced."""


class Reader:
    """One reader of a job. One thread at a time may use it; its calls release Python's lock."""

    def __init__(self, socket: str, *, rank: int, world: int, threads: int) -> None:
        self._library = _library()
        error = ctypes.create_string_buffer(_ERROR_BYTES)
        self._handle = self._library.gnnd_reader_open(
            socket.encode(), rank, world, threads, error, _ERROR_BYTES
        )
        if not self._handle:
            raise Gone(error.value.decode(errors="replace"))
        self.facts = Facts()
        self._library.gnnd_reader_facts(self._handle, ctypes.byref(self.facts))

    def next(self, timeout_ms: int) -> Batch | None:
        """The next batch; None: it did not come in time. Raises `Gone`."""
        batch = Batch()
        answer = self._library.gnnd_reader_next(self._handle, timeout_ms, ctypes.byref(batch))
        if answer < 0:
            raise Gone(self._error())
        return batch if answer > 0 else None

    def copy(
        self,
        *,
        features: int | None,
        nodes: int | None,
        edges: int | None,
        weights: int | None,
        numbers: int | None,
        graph: int | None,
        tables: Sequence[Table],
    ) -> None:
        """Copies the batch to these addresses, and its rows of these tables to theirs.

        `numbers` are those of edges in the graph at `graph` (`Edges`).
        """
        given = (Table * len(tables))(*tables)
        start = ctypes.addressof(given) if tables else None
        arrays = _Arrays(start, len(tables), features, nodes, edges, weights, graph, numbers)
        self._check(self._library.gnnd_reader_copy(self._handle, ctypes.byref(arrays)))

    def parts(self, batch: Batch) -> tuple[list[TypeNodes], list[Block]]:
        """What the batch has of each type, and its blocks in the order of hops."""
        types, blocks = (TypeNodes * batch.num_types)(), (Block * batch.num_blocks)()
        self._check(self._library.gnnd_reader_parts(self._handle, types, blocks))
        return list(types), list(blocks)

    def copy_typed(self, types: Sequence[TypeArrays], relations: Sequence[RelationArrays]) -> None:
        """Copies a batch of several types; of each type and relation of the job there is one."""
        nodes = (TypeArrays * len(types))(*types)
        edges = (RelationArrays * len(relations))(*relations)
        self._check(
            self._library.gnnd_reader_copy_typed(self._handle, nodes, edges, len(relations))
        )

    def copy_hop(
        self,
        hop: int,
        *,
        indptr: int,
        src: int,
        weights: int | None,
        numbers: int | None,
        graph: int | None,
    ) -> None:
        """Copies one hop as compressed rows."""
        arrays = _HopArrays(indptr, src, weights, graph, numbers)
        self._check(self._library.gnnd_reader_copy_hop(self._handle, hop, ctypes.byref(arrays)))

    def copy_pairs(self, items: int, ends: int, negatives: int) -> None:
        """Copies the batch's links to these addresses, as `GnndPairArrays` has them."""
        arrays = _PairArrays(items, ends, negatives)
        self._check(self._library.gnnd_reader_copy_pairs(self._handle, ctypes.byref(arrays)))

    def give_back(self) -> None:
        """Returns the batch, whose memory may be used again. Raises `Gone`."""
        if self._library.gnnd_reader_return(self._handle) != 0:
            raise Gone(self._error())

    def close(self) -> None:
        """Leaves; the job ends without its reader."""
        handle, self._handle = self._handle, None
        if handle:
            self._library.gnnd_reader_close(handle)

    def _check(self, answer: int) -> None:
        if answer != 0:
            raise GnndError(self._error())

    def _error(self) -> str:
        said: bytes = self._library.gnnd_reader_error(self._handle)
        return said.decode(errors="replace")


@cache
def _library() -> ctypes.CDLL:
    path = _path()
    library = ctypes.CDLL(str(path))
    library.gnnd_reader_open.restype = ctypes.c_void_p
    library.gnnd_reader_open.argtypes = [
        ctypes.c_char_p,
        ctypes.c_uint32,
        ctypes.c_uint32,
        ctypes.c_uint32,
        ctypes.c_char_p,
        ctypes.c_size_t,
    ]
    library.gnnd_reader_facts.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
    library.gnnd_reader_facts.restype = None
    library.gnnd_reader_next.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p]
    library.gnnd_reader_copy.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
    library.gnnd_reader_parts.argtypes = [ctypes.c_void_p] * 3
    library.gnnd_reader_copy_typed.argtypes = [*[ctypes.c_void_p] * 3, _U64]
    library.gnnd_reader_copy_hop.argtypes = [ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p]
    library.gnnd_reader_copy_pairs.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
    library.gnnd_reader_return.argtypes = [ctypes.c_void_p]
    library.gnnd_reader_error.argtypes = [ctypes.c_void_p]
    library.gnnd_reader_error.restype = ctypes.c_char_p
    library.gnnd_reader_close.argtypes = [ctypes.c_void_p]
    library.gnnd_reader_close.restype = None
    return library


def _path() -> Path:
    """The library: as `GNND_READER` says, the wheel's, the clone's around this."""
    given = os.environ.get("GNND_READER")
    here = Path(__file__).resolve()
    places = (
        [Path(given)]
        if given
        else [
            *sorted((here.parents[1] / "gnnd_daemon").glob("**/gnnd_reader.so")),
            here.parents[3] / "build" / "native" / "gnnd_reader.so",
        ]
    )
    for place in places:
        if place.exists():
            return place
    raise GnndError(
        "there is no gnnd_reader.so, which reads batches: name it by GNND_READER=PATH; in a clone "
        "it is build/native/gnnd_reader.so after npm run setup"
    )
