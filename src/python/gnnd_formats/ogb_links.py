"""A link property dataset's folder of the Open Graph Benchmark: `raw`, `split/NAME/train.pt`.

`raw` has CSV files (`edge.csv.gz`, `num-node-list.csv.gz`, maybe `node-feat.csv.gz`) or, of large
graphs, `data.npz`. The split's files are of `torch.save`: dictionaries of arrays. Needs torch.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from gnnd_formats.graph import FormatError, Graph, Problem
from gnnd_formats.torch_files import array, loaded_file

SIDES = {"train": "train", "val": "valid", "test": "test"}
#: Said of pairs that are no links, and that models are not judged by.
POOLED = (
    "pairs that are no links are not used: gnnd ranks each link among negatives of its own source, "
    "which it draws (docs/links.md)"
)
_OF_LINKS = {"edge", "edge_neg", "source_node", "target_node", "target_node_neg"}


def read(path: Path, *, directed: bool = False) -> Graph:
    """The graph and its links. Edges are stored in both directions unless `directed`, or unless
    links name their source and target, as OGB's directed ones do."""
    folder = _split_folder(path)
    missing = [name for name in SIDES.values() if not (folder / f"{name}.pt").exists()]
    if missing:
        place = folder.relative_to(path)
        raise FormatError(*(Problem(f"{place}/{name}.pt", "is missing") for name in missing))
    split = {name: loaded_file(folder / f"{name}.pt") for name in SIDES.values()}
    links, notices = links_of(split)
    graph = _graph_of(path / "raw")
    graph.links, graph.notices = links, [*notices, *graph.notices]
    if directed or "source_node" in split["train"]:
        return graph
    edges = graph.arrays["edge_index"]
    graph.arrays["edge_index"] = np.concatenate([edges, edges[::-1]], axis=1)
    graph.notices.append("edges are stored in both directions, as OGB does")
    graph.undirected = True
    return graph


def links_of(split: Mapping[str, Any]) -> tuple[dict[str, np.ndarray], list[str]]:
    """Links of `get_edge_split()`, by the names of docs/links.md, and what of it is not used.

    Raises `FormatError` of links of several relations, and of what is no such dictionary.
    """
    links: dict[str, np.ndarray] = {}
    unused: dict[str, None] = {}
    for side, name in SIDES.items():
        part = split.get(name)
        if not isinstance(part, Mapping):
            raise FormatError(Problem(name, "has no links: expected a dictionary of arrays"))
        if "head" in part or "relation" in part:
            raise FormatError(Problem(name, "has links of several relations: gnnd learns from one"))
        if "edge" in part:
            links[side] = array(part["edge"])
        elif {"source_node", "target_node"} <= part.keys():
            links[side] = np.stack([array(part["source_node"]), array(part["target_node"])])
        else:
            has = ", ".join(map(str, part)) or "nothing"
            text = f"has {has}: expected edge, or source_node and target_node"
            raise FormatError(Problem(name, text))
        if side != "train" and "target_node_neg" in part:
            links[f"{side}_negatives"] = array(part["target_node_neg"])
        if side != "train" and "edge_neg" in part:
            links[f"{side}_negative_pairs"] = array(part["edge_neg"])
        elif "edge_neg" in part:
            unused["edge_neg"] = None
        unused |= dict.fromkeys(map(str, part.keys() - _OF_LINKS))
    notices = [
        POOLED if key == "edge_neg" else f"{key} of links is not used: gnnd learns which there are"
        for key in sorted(unused)
    ]
    return links, notices


def _split_folder(path: Path) -> Path:
    found = sorted(path.glob("split/*/train.pt"))
    if len(found) == 1:
        return found[0].parent
    names = ", ".join(each.parent.name for each in found) or "no folder with train.pt"
    raise FormatError(Problem("split", f"has {names}: expected one split of links"))


def _graph_of(raw: Path) -> Graph:
    if (raw / "data.npz").exists():
        with np.load(raw / "data.npz", allow_pickle=False) as found:
            arrays = {name: found[name] for name in ("edge_index", "node_feat") if name in found}
            count = int(np.ravel(found["num_nodes_list"])[0])
        if "edge_index" not in arrays:
            raise FormatError(Problem("raw/data.npz", "has no edge_index"))
        features = arrays.get("node_feat")
    else:
        count = int(np.ravel(_table(raw, "num-node-list", np.int64))[0])
        arrays = {"edge_index": _table(raw, "edge", np.int64).T}
        has_features = (raw / "node-feat.csv.gz").exists()
        features = _table(raw, "node-feat", np.float32) if has_features else None
    graph = Graph({"edge_index": arrays["edge_index"]}, num_nodes=count)
    if features is not None and features.size > 0:
        graph.arrays["features"] = features
    for name in ("edge-feat", "edge-weight", "edge_year"):
        if (raw / f"{name}.csv.gz").exists():
            graph.notices.append(f"raw/{name}.csv.gz is not used")
    return graph


def _table(raw: Path, name: str, dtype: Any) -> np.ndarray:
    file = raw / f"{name}.csv.gz"
    if not file.exists():
        raise FormatError(Problem(f"raw/{file.name}", "is missing"))
    try:
        table: np.ndarray = np.loadtxt(file, dtype, delimiter=",", ndmin=2)
    except ValueError as error:
        raise FormatError(Problem(f"raw/{file.name}", f"is no table of numbers: {error}")) from None
    return table
