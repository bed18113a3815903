"""Links that a dataset brings: pairs of nodes that jobs learn and are judged by, beside its graph.

Graphs keep them as their libraries leave them: torch_geometric's `RandomLinkSplit`, the Open Graph
Benchmark's `LinkPropPredDataset`, DGL's `AsLinkPredDataset`. Here they become the arrays of
docs/links.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gnnd.errors import Violation, wrong
from gnnd.values import Unfit, as_array
from gnnd.words import advice, shown
from gnnd_formats import FormatError, ogb_links

SIDES = ("train", "val", "test")
#: Pairs by their names in a folder `links`: links, and pools of pairs that are none.
PAIRS = (*SIDES, "val_negative_pairs", "test_negative_pairs")
#: How much each link of training counts.
WEIGHTS = "train_weights"
#: These, and negatives of each link that models are judged by.
NAMES = (*PAIRS, "val_negatives", "test_negatives", WEIGHTS)
#: What is known of the links of each side.
LABELS = {side: f"{side}_labels" for side in SIDES}


@dataclass
class Found:
    """Links of another library's object."""

    links: dict[str, Any] = field(default_factory=dict)
    #: What its person should know of how they were taken.
    notices: list[str] = field(default_factory=list)

    def note(self, text: str) -> None:
        """Says something once."""
        if text not in self.notices:
            self.notices.append(text)


def arrays_of(links: Any) -> dict[str, np.ndarray]:
    """By their names: [2, links] or [links, 2] integers, negatives, labels, and weights.

    Negatives are [links, k], or pairs in a pool. A side may be `(pairs, labels)`: integers are
    classes, several columns of 0 and 1 labels, and floats numbers to regress on, [links] or
    [links, k]. `train_weights` are numbers [links] from 0 on, of the training side.

    Raises `InvalidRequest` with all that is wrong. Whether ids are nodes, and no pair is on two
    sides, the daemon sees.
    """
    expected = (
        "train, val and test, each [2, links] or (pairs, labels), and maybe val_negatives and "
        "test_negatives, or val_negative_pairs and test_negative_pairs, and train_weights"
    )
    if not isinstance(links, Mapping):
        raise wrong("an import", Violation("links", f"{shown(links)}: expected {expected}"))
    wrongs = []
    for key in links:
        if key not in NAMES:
            near = advice(key, NAMES)
            wrongs.append(Violation(f"links.{key}", f"there are no such links: {expected}{near}"))
    found: dict[str, np.ndarray] = {}
    for name in NAMES:
        if links.get(name) is None:
            if name in SIDES:
                wrongs.append(Violation(f"links.{name}", f"is missing: expected {expected}"))
            continue
        try:
            if name == WEIGHTS:
                found[name] = _weights(links[name], found.get("train"))
                continue
            pairs, labels = _labelled(links[name]) if name in SIDES else (links[name], None)
            found[name] = _ids(pairs, is_pairs=name in PAIRS)
            if labels is not None:
                found[LABELS[name]] = _labels(labels, found[name])
        except Unfit as error:
            wrongs.append(Violation(f"links.{name}", str(error)))
    if wrongs:
        raise wrong("an import", *wrongs)
    return found


def _labelled(side: Any) -> tuple[Any, Any]:
    """Pairs, and what is known of each, or None: two lists of ids are no pairs and labels."""
    if not isinstance(side, tuple) or len(side) != 2 or as_array(side[0]).ndim != 2:
        return side, None
    return side


def _labels(values: Any, pairs: np.ndarray) -> np.ndarray:
    array = as_array(values)
    links = pairs.size // 2
    if array.dtype.kind not in "biuf":
        raise Unfit(f"labels are of type {array.dtype}: expected integers, which are classes")
    if array.ndim not in (1, 2) or len(array) != links:
        raise Unfit(f"labels have shape {array.shape}: expected ({links:,},), one for each link")
    return array.astype(np.uint8) if array.dtype.kind == "b" else array


def _weights(values: Any, pairs: np.ndarray | None) -> np.ndarray:
    array = as_array(values)
    if array.dtype.kind not in "iuf":
        raise Unfit(f"they are of type {array.dtype}: expected numbers")
    links = array.size if pairs is None else pairs.size // 2
    if array.shape != (links,):
        expected = f"expected ({links:,},), one for each link of train"
        raise Unfit(f"they have shape {array.shape}: {expected}")
    if not (np.isfinite(array) & (array >= 0)).all() or not (array > 0).any():
        raise Unfit("expected finite numbers from 0 on, one of them above 0")
    return array


def _ids(values: Any, *, is_pairs: bool) -> np.ndarray:
    array = as_array(values)
    shape = "[2, links] or [links, 2]" if is_pairs else "[links, negatives]"
    if array.dtype.kind not in "iu":
        raise Unfit(f"they are of type {array.dtype}: expected ids of nodes {shape}")
    if array.ndim != 2 or (is_pairs and 2 not in array.shape):
        raise Unfit(f"they have shape {array.shape}: expected {shape}")
    return array


def of_pyg(parts: Sequence[Any]) -> Found:
    """Of (train, val, test), as torch_geometric's `RandomLinkSplit` returns them."""
    found = Found()
    wrongs = []
    has_kinds = any(_has_kinds(data) for data in parts)
    edges = _edges_of(parts) if has_kinds else None
    for side, data in zip(SIDES, parts, strict=True):
        try:
            # Links of the test are edges of no part; their split is that of validation.
            judged = None if side == "test" else edges
            found.links[side] = (
                _labelled_links(data, judged) if has_kinds else _positives(data, found)
            )
        except Unfit as error:
            wrongs.append(Violation(side, str(error)))
    if wrongs:
        raise wrong("import_pyg()", *wrongs)
    return found


def is_pyg_split(data: Any) -> bool:
    """Whether it is three graphs with links to learn, of which one is of messages."""
    return (
        isinstance(data, (tuple, list))
        and len(data) == len(SIDES)
        and all(
            _first(part, "edge_label_index", "pos_edge_label_index") is not None for part in data
        )
    )


def _first(data: Any, *names: str) -> Any:
    found = (getattr(data, name, None) for name in names)
    return next((each for each in found if each is not None), None)


def _has_kinds(data: Any) -> bool:
    """Whether labels say more than whether a pair is a link."""
    labels = _first(data, "edge_label")
    return labels is not None and not np.isin(as_array(labels), (0, 1)).all()


def _labelled_links(data: Any, edges: np.ndarray | None) -> Any:
    """Pairs of a part, with what is known of them; those of class 0 are among `edges`, if given.

    `RandomLinkSplit` adds pairs that are none, as class 0, unless it is told not to.
    """
    pairs = _ids(_first(data, "edge_label_index"), is_pairs=True)
    values = _first(data, "edge_label")
    if values is None:
        raise Unfit("edge_label is missing: expected that of each part, or of none")
    labels = as_array(values)
    none = pairs[:, labels == 0] if labels.shape == (pairs.shape[1],) else pairs[:, :0]
    is_class = labels.dtype.kind != "f"
    if is_class and edges is not None and not np.isin(_keys(none), edges).all():
        raise Unfit(
            "edge_label has 0 of pairs that are no edges, beside classes: split with "
            "RandomLinkSplit(neg_sampling_ratio=0.0), or hand pairs and classes to "
            "import_arrays(links={'train': (pairs, labels), …})"
        )
    return pairs, labels


def _keys(pairs: np.ndarray) -> np.ndarray:
    """A number for each pair [2, links]."""
    keys: np.ndarray = pairs[0].astype(np.int64) << 32 | pairs[1].astype(np.int64)
    return keys


def _edges_of(parts: Sequence[Any]) -> np.ndarray:
    """Edges of all parts, of which the last has those of training and validation."""
    known = [as_array(part.edge_index) for part in parts if _first(part, "edge_index") is not None]
    return np.concatenate([_keys(each) for each in known]) if known else np.zeros(0, np.int64)


def _positives(data: Any, found: Found) -> np.ndarray:
    """Those pairs of a part that are links."""
    pairs = _ids(_first(data, "pos_edge_label_index", "edge_label_index"), is_pairs=True)
    if _first(data, "pos_edge_label_index") is not None:
        if _first(data, "neg_edge_label_index") is not None:
            found.note(ogb_links.POOLED)
        return pairs
    labels = _first(data, "edge_label")
    if labels is None:
        return pairs
    kinds = as_array(labels)
    if kinds.shape != (pairs.shape[1],):
        raise Unfit(f"edge_label has shape {kinds.shape}: expected ({pairs.shape[1]:,},)")
    if not (kinds == 0).any():
        return pairs
    found.note(ogb_links.POOLED)
    positives: np.ndarray = pairs[:, kinds == 1]
    return positives


def of_ogb(split: Mapping[str, Any]) -> Found:
    """Of `LinkPropPredDataset.get_edge_split()`."""
    try:
        return Found(*ogb_links.links_of(split))
    except FormatError as error:
        wrongs = (Violation(each.path, each.description) for each in error.problems)
        raise wrong("import_ogb()", *wrongs) from None


def of_dgl(dataset: Any) -> Found:
    """Of a DGL dataset with `train_edges`, `val_edges` and `test_edges`: links, then none."""
    found = Found()
    for side in SIDES:
        (sources, targets), *negatives = getattr(dataset, f"{side}_edges")
        found.links[side] = np.stack([as_array(sources), as_array(targets)])
        if negatives:
            found.note(ogb_links.POOLED)
    return found


def is_dgl_split(dataset: Any) -> bool:
    """Whether it has links to learn."""
    return all(getattr(dataset, f"{side}_edges", None) is not None for side in SIDES)
