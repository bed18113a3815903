"""Writes one random graph in the formats of other libraries: `write_formats.py FOLDER SEED`.

Beside them `reference.npz` is the same graph in gnnd's own arrays, by which they are judged.
"""

import json
import pickle
import sys
from pathlib import Path
from types import ModuleType

import networkx as nx
import numpy as np
import scipy.sparse as sp
import torch
from torch_geometric.data import Data, HeteroData

folder, seed = Path(sys.argv[1]), int(sys.argv[2])
rng = np.random.default_rng(seed)
n, classes, columns = int(rng.integers(20, 60)), 4, 6
splits = rng.permutation(n) % 4
masks = {"train": splits < 2, "val": splits == 2, "test": splits == 3}
x = np.where(rng.random((n, columns)) < 0.5, 0, rng.normal(size=(n, columns))).astype(np.float32)
y = rng.integers(0, classes, n)
y[0] = classes - 1


def sorted_edges(ends):
    """By target, then by source: the order in which rows of a dataset list them."""
    return np.ascontiguousarray(ends[:, np.lexsort((ends[0], ends[1]))])


# Directed, with loops and repeats; the last nodes have no edge at all.
wild = sorted_edges(rng.integers(0, n - 3, (2, 4 * n)))
weights = rng.random(wild.shape[1]).astype(np.float32)
# In both directions, each once: what formats without direction hold.
half = np.unique(np.sort(rng.integers(0, n - 3, (2, 3 * n)), axis=0), axis=1)
half = half[:, half[0] != half[1]]
plain = sorted_edges(np.concatenate([half, half[::-1]], axis=1))


def reference(name, edges, **more):
    """The graph in gnnd's own names."""
    arrays = {"x": x, "y": y, "edge_index": edges, **{f"{k}_mask": v for k, v in masks.items()}}
    np.savez(folder / f"{name}.npz", **arrays, **more)


reference("reference-wild", wild, edge_weight=weights)
reference("reference-unweighted", wild)
reference("reference-plain", plain)

tensors = {"x": x, "y": y, "edge_index": wild, "edge_weight": weights}
tensors.update({f"{name}_mask": mask for name, mask in masks.items()})
data = Data(**{name: torch.from_numpy(array) for name, array in tensors.items()})
torch.save(data, folder / "wild-object.pt")
torch.save(data, folder / "wild-legacy.pt", _use_new_zipfile_serialization=False)
torch.save((data, {"x": torch.tensor([0, n])}), folder / "wild-slices.pt")
torch.save(data.to_dict(), folder / "wild-tensors.pt")
processed = folder / "wild-dataset" / "processed"
processed.mkdir(parents=True)
torch.save((data.to_dict(), None, Data), processed / "data_undirected.pt")
torch.save("None", processed / "pre_filter.pt")
byte = data.clone()
for name in masks:
    byte[f"{name}_mask"] = byte[f"{name}_mask"].to(torch.uint8 if name == "train" else torch.int64)
byte.x = byte.x.to_sparse()
torch.save(byte, folder / "wild-bytes-sparse.pt")


class SparseStorage:
    """What torch_sparse stores of a matrix: pickles name its class, and have its fields."""

    def __init__(self, rows, columns, values, size):
        self._row, self._rowptr, self._col = rows, None, columns
        self._value, self._sparse_sizes = values, (size, size)


class SparseTensor:
    """As torch_geometric's ToSparseTensor leaves it in `adj_t`."""


sys.modules["torch_sparse"] = ModuleType("torch_sparse")
for kind, module in (
    (SparseStorage, "torch_sparse.storage"),
    (SparseTensor, "torch_sparse.tensor"),
):
    # Pickle looks a class up where it says that it is.
    kind.__module__ = module
    sys.modules[module] = ModuleType(module)
    setattr(sys.modules[module], kind.__name__, kind)
rows = SparseTensor()
rows.storage = SparseStorage(data.edge_index[1], data.edge_index[0], data.edge_weight, n)
turned = data.clone()
del turned.edge_index, turned.edge_weight
turned.adj_t = rows
torch.save(turned, folder / "wild-adj-t.pt")
one = HeteroData()
for name in ("x", "y", *(f"{name}_mask" for name in masks)):
    one["paper"][name] = data[name]
one["paper", "cites", "paper"].edge_index = data.edge_index
one["paper", "cites", "paper"].edge_weight = data.edge_weight
torch.save(one, folder / "wild-one-type.pt")
one["author"].x = torch.eye(2)
torch.save(one, folder / "several-types.pt")
torch.save([data, data], folder / "a-list.pt")

rows = sp.csr_matrix((np.ones(plain.shape[1]), plain), shape=(n, n))
features = sp.csr_matrix(x)
arrays = {}
upper = sp.triu(rows).tocsr()
for prefix, matrix in (("adj", upper), ("attr", features)):
    arrays.update(
        {f"{prefix}_{part}": getattr(matrix, part) for part in ("data", "indices", "indptr")}
    )
    arrays[f"{prefix}_shape"] = np.array(matrix.shape)
named = {f"{name}_mask": mask for name, mask in masks.items()}
np.savez(folder / "plain-citations.npz", **arrays, labels=y, **named)
np.savez(
    folder / "plain-heterophilous.npz",
    node_features=x,
    node_labels=y,
    edges=half.T,
    **{f"{name}_masks": np.stack([~mask, mask]) for name, mask in masks.items()},
)
np.savez(
    folder / "no-split.npz",
    **arrays,
    labels=y,
    class_names=np.array([f"kind {each}" for each in range(classes)], object),
    node_names=np.array([f"page {node}" for node in range(n)]),
)

saint = folder / "wild-graphsaint"
saint.mkdir()
by_rows = sp.csr_matrix((np.ones(plain.shape[1]), plain), shape=(n, n))
sp.save_npz(saint / "adj_full.npz", by_rows)
np.save(saint / "feats.npy", x)
json.dump(
    {str(node): int(label) for node, label in enumerate(y)}, (saint / "class_map.json").open("w")
)
roles = {
    role: np.flatnonzero(masks[name]).tolist()
    for role, name in (("tr", "train"), ("va", "val"), ("te", "test"))
}
json.dump(roles, (saint / "role.json").open("w"))
saint.rename(folder / "plain-graphsaint")

# Nodes of GraphSAGE are listed in another order than they are numbered.
sage = folder / "plain-graphsage"
sage.mkdir()
order = rng.permutation(n)
place = np.argsort(order)
listed = {
    "directed": False,
    "graph": {},
    "multigraph": False,
    "nodes": [
        {"id": f"n{node}", "val": bool(masks["val"][node]), "test": bool(masks["test"][node])}
        for node in order
    ],
    "links": [{"source": int(place[u]), "target": int(place[v])} for u, v in half.T],
}
json.dump(listed, (sage / "toy-G.json").open("w"))
json.dump({f"n{node}": node for node in range(n)}, (sage / "toy-id_map.json").open("w"))
json.dump(
    {f"n{node}": int(label) for node, label in enumerate(y)},
    (sage / "toy-class_map.json").open("w"),
)
np.save(sage / "toy-feats.npy", x)

# Planetoid's split is made of the files: the first nodes train, the next 500 validate.
planetoid, tests = folder / "planetoid", np.arange(n - 5, n)
planetoid.mkdir()
one_hot = np.eye(classes)[y]
parts = {
    "x": features[:8],
    "y": one_hot[:8],
    "allx": features[: n - 5],
    "ally": one_hot[: n - 5],
    "tx": features[tests[::-1]],
    "ty": one_hot[tests[::-1]],
    "graph": {u: plain[1][plain[0] == u].tolist() * 2 for u in range(n)},
}
for part, values in parts.items():
    pickle.dump(values, (planetoid / f"ind.toy.{part}").open("wb"), protocol=2)
(planetoid / "ind.toy.test.index").write_text("".join(f"{node}\n" for node in tests[::-1]))
split = {"train": np.arange(8), "val": np.arange(8, n - 5), "test": tests}
np.savez(folder / "reference-planetoid.npz", x=x, y=y, edge_index=plain, **split)

graph = nx.Graph()
word = {at: name for name, mask in masks.items() for at in np.flatnonzero(mask)}
for node in range(n):
    row = {f"f{at}": float(value) for at, value in enumerate(x[node])}
    graph.add_node(f"n{node}", y=int(y[node]), split=word[node], **row)
graph.add_edges_from((f"n{u}", f"n{v}") for u, v in half.T)
nx.write_gml(graph, folder / "plain.gml")
nx.write_graphml(graph, folder / "plain.graphml")
nx.write_gexf(graph, folder / "plain.gexf")
json.dump(nx.node_link_data(graph, edges="links"), (folder / "plain-links.json").open("w"))
json.dump(nx.node_link_data(graph, edges="edges"), (folder / "plain-edges.json").open("w"))
(folder / "plain-by-another-name.txt").write_bytes((folder / "plain.graphml").read_bytes())
graph.nodes["n3"]["y"] = "red"
nx.write_graphml(graph, folder / "mixed-labels.graphml")
(folder / "bare.gml").write_text("graph [ node [ id 7 ] node [ id 9 ] edge [ source 7 target 9 ] ]")
(folder / "empty.gml").write_text("graph [ ]")
(folder / "cut.graphml").write_text("<graphml>")

# Links as OGB splits them, of a graph without labels; pairs of one side are of no other.
ends = half[:, rng.permutation(half.shape[1])]
of_sides = np.split(ends, [half.shape[1] // 2, 3 * half.shape[1] // 4], axis=1)
seen = of_sides[0]
own = folder / "reference-links"
(own / "links").mkdir(parents=True)
np.save(own / "features.npy", x)
both = np.concatenate([seen, seen[::-1]], axis=1)
np.save(own / "edge_index.npy", np.ascontiguousarray(both))
negatives = rng.integers(0, n - 3, (half.shape[1], 3))
for name, links in zip(("train", "val", "test"), of_sides, strict=True):
    np.save(own / f"links/{name}.npy", np.ascontiguousarray(links))
    if name != "train":
        np.save(own / f"links/{name}_negative_pairs.npy", np.ascontiguousarray(links.T[:3]))
(own / "meta.json").write_text('{"undirected": true}')


def write_ogb(name, parts):
    """A folder as `LinkPropPredDataset` leaves it."""
    (folder / name / "raw").mkdir(parents=True)
    (folder / name / "split/time").mkdir(parents=True)
    for table, values, form in (("edge", seen.T, "%d"), ("node-feat", x, "%.9g")):
        np.savetxt(folder / name / f"raw/{table}.csv.gz", values, form, delimiter=",")
    np.savetxt(folder / name / "raw/num-node-list.csv.gz", [n], "%d")
    for side, part in parts.items():
        torch.save(part, folder / name / f"split/time/{side}.pt")


ogb_sides = dict(zip(("train", "valid", "test"), of_sides, strict=True))
write_ogb("ogb-links", {k: {"edge": v.T, "edge_neg": v.T[:3]} for k, v in ogb_sides.items()})
cited = {k: {"source_node": v[0], "target_node": torch.tensor(v[1])} for k, v in ogb_sides.items()}
for side in ("valid", "test"):
    cited[side]["target_node_neg"] = negatives[: ogb_sides[side].shape[1]]
write_ogb("ogb-cited", cited)
write_ogb("ogb-relations", {k: {"head": v[0], "relation": v[0]} for k, v in ogb_sides.items()})


class Code:
    """What a pickle must not do here."""

    def __reduce__(self):
        return (Path.touch, (folder / "code-ran",))


torch.save({"edge_index": Code()}, folder / "code.pt")
(folder / "damaged.pt").write_bytes((folder / "wild-object.pt").read_bytes()[:-900])
