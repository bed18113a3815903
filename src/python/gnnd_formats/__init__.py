"""Graphs in files of other libraries, as the arrays that gnnd imports.

Needs numpy alone; a reader that needs more (torch, networkx, scipy) says so. The daemon runs this
package as a program of its own (`python -m gnnd_formats`), `gnnd` reads files with it, too. No code
of a file is run: pickles are read by unpicklers that know data only.
"""

from __future__ import annotations

import importlib
import os
from pathlib import Path

from gnnd_formats.graph import FormatError, Graph, Problem, Sparse, TypedGraph

__all__ = ["FORMATS", "FormatError", "Graph", "Problem", "Sparse", "TypedGraph", "read"]

#: Formats of the API (ImportFormat), and the module of this package whose `read` reads each.
FORMATS = {
    "PYG": "torch_files",
    "DGL": "dgl_files",
    "PLANETOID": "planetoid",
    "GRAPHSAINT": "graphsaint",
    "GRAPHSAGE": "graphsage",
    "NETWORKX": "networkx_files",
    "BENCHMARK_NPZ": "benchmarks",
    "OGB_LINKS": "ogb_links",
}


def read(
    format: str, path: str | os.PathLike[str], *, directed: bool = False
) -> Graph | TypedGraph:
    """The graph of a file or folder of one of `FORMATS`.

    `directed` keeps edges as they are listed, where a format's readers store both directions.
    Raises `FormatError` with everything that is wrong with it, `OSError` where it cannot be read.
    """
    module = importlib.import_module(f"gnnd_formats.{FORMATS[format]}")
    graph: Graph | TypedGraph = module.read(Path(path), directed=directed)
    return graph
