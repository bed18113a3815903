"""A folder of GraphSAGE (Hamilton et al. 2017): `NAME-G.json`, `NAME-feats.npy`,
`NAME-id_map.json`, `NAME-class_map.json`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from gnnd_formats.graph import FormatError, Graph, Problem, made_undirected
from gnnd_formats.graphsaint import labels_of, read_json


def read(path: Path, *, directed: bool = False) -> Graph:
    """The graph without direction; nodes marked `val` and `test` are those splits, others train."""
    graphs = sorted(path.glob("*-G.json"))
    if len(graphs) != 1:
        names = ", ".join(file.name for file in graphs) or "none"
        raise FormatError(Problem(path.name, f"expected one file NAME-G.json, found {names}"))
    stem = str(graphs[0]).removesuffix("-G.json")
    needed = ("-id_map.json", "-class_map.json")
    missing = [Path(stem + end).name for end in needed if not Path(stem + end).exists()]
    if missing:
        raise FormatError(*(Problem(name, f"is missing in {path.name}") for name in missing))
    listed = read_json(graphs[0])
    number = {str(node): int(at) for node, at in read_json(Path(stem + "-id_map.json")).items()}
    nodes = listed.get("nodes", [])
    count = max(number.values(), default=-1) + 1
    unknown = [node["id"] for node in nodes if str(node.get("id")) not in number]
    if unknown:
        text = f"has the node {unknown[0]} and {len(unknown) - 1} more that id_map.json lacks"
        raise FormatError(Problem(graphs[0].name, text))
    places = [number[str(node["id"])] for node in nodes]
    links = listed.get("links") or listed.get("edges") or []
    # networkx 1, which GraphSAGE used, wrote the ends of links as places in the list of nodes.
    ends = [
        [places[end] if isinstance(end, int) else number[str(end)] for end in _ends(link)]
        for link in links
    ]
    edges = np.array(ends, np.int64).reshape(-1, 2).T
    graph = Graph({}, undirected=True)
    labels = labels_of(read_json(Path(stem + "-class_map.json")), count, number)
    splits: dict[str, list[int]] = {"train": [], "val": [], "test": []}
    for at, node in zip(places, nodes, strict=True):
        name = "test" if node.get("test") else "val" if node.get("val") else "train"
        splits[name].append(at)
    graph.arrays = {
        "labels": labels,
        "edge_index": made_undirected(edges, count, graph.notices),
        **{name: np.array(sorted(ids), np.int64) for name, ids in splits.items()},
    }
    if Path(stem + "-feats.npy").exists():
        graph.arrays["features"] = np.load(stem + "-feats.npy", mmap_mode="r")
    ids = [""] * count
    for node, at in number.items():
        ids[at] = node
    if ids != [str(at) for at in range(count)]:
        graph.node_names = ids
    return graph


def _ends(link: dict[str, Any]) -> tuple[Any, Any]:
    return link["source"], link["target"]
