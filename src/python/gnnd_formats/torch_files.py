"""A file of `torch.save` with one graph of torch_geometric, or a dataset's folder. Needs torch.

torch_geometric is not needed, whatever version wrote the file: objects of its classes become inert
ones with the state that was stored. Tensors are mapped, not read.
"""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from gnnd_formats.data_pickles import Inert, Refused, unpickler
from gnnd_formats.graph import FormatError, Graph, Problem, Sparse, TypedGraph, as_mask

#: What datasets of one graph call their file, the likeliest first.
NAMES = ("data.pt", "data_undirected.pt", "geometric_data_processed.pt")
_REBUILDS = {
    *("_rebuild_tensor", "_rebuild_tensor_v2", "_rebuild_tensor_v3", "_rebuild_parameter"),
    *("_rebuild_sparse_tensor", "_rebuild_sparse_csr_tensor"),
}
#: Whose classes are known to hold graphs.
_LIBRARIES = ("torch_geometric.", "torch_sparse.", "ogb.")


def read(path: Path, *, directed: bool = False) -> Graph | TypedGraph:
    """The graph of the file, or of the folder's only graph."""
    file = file_of(path)
    return graph_of(loaded_file(file), file)


def loaded_file(file: Path) -> Any:
    """What `torch.save` put into a file, as data. Raises `FormatError`."""
    try:
        import torch
    except ImportError:
        needs = "needs torch in Python: pip install torch"
        raise FormatError(Problem(file.name, needs)) from None
    return _loaded(torch, file)


def file_of(path: Path) -> Path:
    """The file of a dataset's folder that has its graph: `processed/data.pt` and the like."""
    if not path.is_dir():
        return path
    folders = [path, path / "processed"]
    inner = sorted(place.parent for place in path.glob("*/processed") if place.is_dir())
    if len(inner) == 1 and not (path / "processed").is_dir():
        folders.append(inner[0] / "processed")
    there = [file for folder in folders if folder.is_dir() for file in sorted(folder.glob("*.pt"))]
    # Of what a dataset was made with, not of the graph.
    files = [file for file in there if not file.name.startswith("pre_")]
    for name in NAMES:
        found = [file for file in files if file.name == name]
        if found:
            return found[0]
    if len(files) == 1:
        return files[0]
    names = ", ".join(str(file.relative_to(path)) for file in files[:8]) or "no .pt file"
    expected = f"expected one of {', '.join(NAMES)}, or a single .pt file; name the file itself"
    raise FormatError(Problem(path.name, f"has {names} in it or in processed: {expected}"))


def _loaded(torch: Any, file: Path) -> Any:
    def found(module: str, name: str) -> Any:
        if module.startswith(_LIBRARIES):
            return type(name, (Inert,), {"__module__": module})
        if module == "torch._utils" and name in _REBUILDS:
            return getattr(torch._utils, name)
        if module == "torch.serialization" and name == "_get_layout":
            return torch.serialization._get_layout
        if module == "torch.storage" and name in ("UntypedStorage", "TypedStorage"):
            return getattr(torch.storage, name)
        if module == "torch":
            value = getattr(torch, name, None)
            is_data = isinstance(value, torch.dtype | torch.layout) or name.endswith("Storage")
            return value if is_data or name in ("Size", "device", "Tensor") else None
        return None

    kind = unpickler(found)
    pickles = SimpleNamespace(
        __name__="gnnd_formats.data_pickles",
        Unpickler=kind,
        load=lambda data, **options: kind(data, **options).load(),
    )
    options = {"map_location": "cpu", "weights_only": False, "pickle_module": pickles}
    try:
        try:
            return torch.load(str(file), mmap=True, **options)
        except RuntimeError as error:
            # Before torch 1.6 files were no archives, which cannot be mapped.
            if "mmap" not in str(error):
                raise
            return torch.load(str(file), **options)
    except Refused as refused:
        text = f"{refused}: load it in Python, and give client.import_pyg() the graph"
        raise FormatError(Problem(file.name, text)) from None
    except (
        RuntimeError,
        pickle.UnpicklingError,
        OSError,
        EOFError,
        LookupError,
        ValueError,
    ) as error:
        if isinstance(error, OSError) and error.filename is not None:
            raise
        reason = str(error).strip().split("\n")[0]
        raise FormatError(Problem(file.name, f"is no whole file of torch.save: {reason}")) from None


def graph_of(loaded: Any, file: Path) -> Graph | TypedGraph:
    """The graph of what was loaded: (data, slices, …) as datasets save it, a graph, or tensors by
    name."""
    data = loaded
    if isinstance(loaded, tuple) and len(loaded) > 0:
        data, slices = loaded[0], loaded[1] if len(loaded) > 1 else None
        ends = slices.values() if isinstance(slices, Mapping) else ()
        several = max((len(each) - 1 for each in ends if hasattr(each, "__len__")), default=1)
        if several > 1:
            text = f"holds {several} graphs: gnnd learns from one"
            raise FormatError(Problem(file.name, text))
    stores = typed_stores(data)
    if stores is not None:
        return typed_graph(*stores, file)
    fields, notices = fields_of(data, file), []
    if "edge_attr" in fields:
        notices.append(
            "edge_attr is not used: models here read no features of edges, but one weight an edge"
        )
    graph = Graph(_arrays(fields, file), notices=notices)
    count = fields.get("num_nodes")
    graph.num_nodes = int(count) if isinstance(count, int) else None
    if not {"edge_index", "indptr"} & graph.arrays.keys():
        has = ", ".join(sorted(map(str, fields))) or "nothing"
        kind = type(data).__name__
        text = f"holds a {kind} without edge_index or adj_t: it has {has}"
        raise FormatError(Problem(file.name, text))
    return graph


def fields_of(data: Any, file: Path) -> dict[str, Any]:
    """Attributes by name of a graph in any form that torch_geometric ever stored."""
    if isinstance(data, Inert):
        types, relations = data.get("_node_store_dict"), data.get("_edge_store_dict")
        if isinstance(types, Mapping) and isinstance(relations, Mapping):
            return _fields_of_types(types, relations, file)
        return _store(data)
    if isinstance(data, Mapping):
        # As `HeteroData.to_dict()`: a relation is named by three texts.
        relations = {name: each for name, each in data.items() if isinstance(name, tuple)}
        if relations:
            others = {name: each for name, each in data.items() if isinstance(name, str)}
            types = {name: each for name, each in others.items() if name != "_global_store"}
            return _fields_of_types(types, relations, file)
        return {str(name): value for name, value in data.items() if value is not None}
    raise FormatError(Problem(file.name, f"holds a {type(data).__name__}, which is no graph"))


def _store(data: Any) -> dict[str, Any]:
    """Data → its store → the mapping in it; before torch_geometric 2 fields stood in it alone."""
    for name in ("_store", "_mapping"):
        inner = data.get(name) if isinstance(data, Inert) else None
        if isinstance(inner, Inert | Mapping):
            return _store(inner)
    state = data.state if isinstance(data, Inert) else data
    pairs = state.items() if isinstance(state, Mapping) else ()
    # Data of torch_geometric 1 kept private counts beside its fields.
    return {str(key): value for key, value in pairs if value is not None and key[:2] != "__"}


def _fields_of_types(types: Any, relations: Any, file: Path) -> dict[str, Any]:
    if len(types) == 1 and len(relations) == 1:
        return {**_store(next(iter(types.values()))), **_store(next(iter(relations.values())))}
    raise FormatError(Problem(file.name, "holds no types of nodes, or no relations"))


def typed_stores(data: Any) -> tuple[Any, Any] | None:
    """What types and relations of a `HeteroData` have; None where it is one of each or none."""
    types, relations = None, None
    if isinstance(data, Inert):
        types, relations = data.get("_node_store_dict"), data.get("_edge_store_dict")
    elif isinstance(data, Mapping):
        relations = {name: each for name, each in data.items() if isinstance(name, tuple)}
        others = {name: each for name, each in data.items() if isinstance(name, str)}
        types = {name: each for name, each in others.items() if name != "_global_store"}
    if not isinstance(types, Mapping) or not isinstance(relations, Mapping):
        return None
    has_both = len(types) > 0 and len(relations) > 0
    return (types, relations) if has_both and len(types) + len(relations) > 2 else None


#: Of edges, which would be lost.
_NOT_YET = ("edge_weight", "time", "edge_time")
_NODE_ARRAYS = ("features", "labels", "train", "val", "test")
_EDGE_ARRAYS = ("edge_index", "indptr", "indices")


def typed_graph(types: Any, relations: Any, file: Path) -> TypedGraph:
    """Of the stores of a `HeteroData`; says all that is wrong at once."""
    problems: list[Problem] = []
    graph = TypedGraph({}, {}, {})
    for name, store in types.items():
        fields = _store(store)
        arrays = _arrays(fields, file)
        found = {key: arrays[key] for key in _NODE_ARRAYS if key in arrays}
        rows = [found[key].shape[0] for key in ("features", "labels") if key in found]
        count = rows[0] if rows else fields.get("num_nodes")
        if not isinstance(count, int):
            text = f"nobody knows how many nodes {name} has: it has no x, y or num_nodes"
            problems.append(Problem(file.name, text))
            continue
        graph.counts[str(name)] = count
        if found:
            graph.nodes[str(name)] = found
    for relation, store in relations.items():
        text = "__".join(map(str, relation))
        fields = _store(store)
        arrays = _arrays(fields, file)
        lost = [key for key in _NOT_YET if fields.get(key) is not None]
        for key in [*lost, *(["edge_weight"] if "edge_weights" in arrays and not lost else [])]:
            what = f"{text} has {key}, and several types take edges alone so far; remove it first"
            problems.append(Problem(file.name, what))
        if fields.get("edge_attr") is not None:
            graph.notices.append(f"{text}: edge_attr is not used")
        graph.edges[text] = {key: arrays[key] for key in _EDGE_ARRAYS if key in arrays}
        if not graph.edges[text]:
            problems.append(Problem(file.name, f"{text} has no edge_index or adj_t"))
    if problems:
        raise FormatError(*problems)
    return graph


def _arrays(fields: Mapping[str, Any], file: Path) -> dict[str, Any]:
    def first(*names: str) -> Any:
        return next((fields[name] for name in names if fields.get(name) is not None), None)

    found = {
        "features": first("x", "node_feat"),
        "labels": first("y", "node_label"),
        "edge_index": first("edge_index"),
        "edge_weights": first("edge_weight"),
    }
    for split, others in (("train", ()), ("val", ("valid",)), ("test", ())):
        words = (split, *others)
        mask = first(*(f"{word}_mask" for word in words))
        ids = first(*(f"{word}_{end}" for word in words for end in ("idx", "index")))
        # Older versions of torch stored masks as numbers.
        found[split] = ids if mask is None else as_mask(array(mask), file.name, f"{split}_mask")
    if found["edge_index"] is None and first("adj_t", "adj") is not None:
        found.update(_rows(fields, file))
    return {name: array(values) for name, values in found.items() if values is not None}


def _rows(fields: Mapping[str, Any], file: Path) -> dict[str, Any]:
    """Of `adj_t`: row v of the transposed adjacency lists what v learns from."""
    matrix = fields.get("adj_t")
    if matrix is None:
        text = "has adj, and not adj_t or edge_index: which way its edges point is not known"
        raise FormatError(Problem(file.name, text))
    if not isinstance(matrix, Inert):
        rows = matrix.to_sparse_csr()
        found = {"indptr": rows.crow_indices(), "indices": rows.col_indices()}
        values = rows.values()
    else:
        storage = matrix.get("storage")
        storage = storage if isinstance(storage, Inert) else matrix
        found = {"indices": storage.get("_col")}
        values = storage.get("_value")
        indptr, row = storage.get("_rowptr"), storage.get("_row")
        if indptr is None:
            count = storage.get("_sparse_sizes")[0]
            indptr = np.searchsorted(array(row), np.arange(count + 1))
        found["indptr"] = indptr
    if values is not None and not bool((values == 1).all()):
        found["edge_weights"] = values
    return found


def array(values: Any) -> Any:
    """A numpy array over the same memory; sparse tensors become `Sparse`."""
    if not hasattr(values, "detach"):
        return np.asarray(values)
    values = values.detach()
    if str(values.layout) in ("torch.sparse_coo", "torch.sparse_csr"):
        rows = values.to_sparse_csr()
        indptr, indices = np.asarray(rows.crow_indices()), np.asarray(rows.col_indices())
        return Sparse(indptr, indices, np.asarray(rows.values()), int(values.shape[1]))
    return values.float().numpy() if str(values.dtype) == "torch.bfloat16" else values.numpy()
