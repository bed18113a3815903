"""Batches of links for a training loop of one's own (docs/loader.md#links)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gnnd.calls import public
from gnnd.errors import Violation, wrong
from gnnd.items import LinkItems, negatives_of
from gnnd.loading import Loader, loader
from gnnd.words import shown


@public
def link_loader(
    data: Any,
    num_neighbors: Sequence[int] = (10, 10),
    edge_label_index: Any = None,
    edge_label: Any = None,
    *,
    neg_sampling: Any = None,
    neg_sampling_ratio: float | None = None,
    exclude_links: bool = True,
    edge_label_time: None = None,
    form: str = "pyg",
    **options: Any,
) -> Loader:
    """Batches around links, as `torch_geometric.loader.LinkNeighborLoader` gives them.

    Args:
        data: A `torch_geometric.data.Data`, or the name of a dataset of `client`.
        num_neighbors: Neighbours drawn for each node and hop, from the links' ends outward.
        edge_label_index: The links, [2, links]: sources and destinations. None: all edges of a
            `Data`.
        edge_label: Of each link, [links] or [links, columns]. Beside negatives of mode "binary"
            labels that begin at 0 are counted up by one, for 0 tells a negative.
        neg_sampling: "binary", "triplet", (mode, amount), a mapping, or torch_geometric's
            `NegativeSampling`. "binary": `amount` pairs of nodes for each link, both ends drawn
            alike of all nodes; batches have `edge_label_index` and `edge_label`. "triplet":
            `amount` destinations for each link; batches have `src_index`, `dst_pos_index`,
            `dst_neg_index`.
        neg_sampling_ratio: The same as ("binary", ratio).
        exclude_links: Whether a batch's own links, and their reverses, are left out of its edges.
            LinkNeighborLoader leaves them in, so that a model may read off what it is asked.
        edge_label_time: Not available: edges have no times.
        form: "pyg", "layers" or "tensors".
        options: Further arguments of `gnnd.loader`; `batch_size` counts links.
    """
    found = []
    if hasattr(data, "edge_types"):
        text = "HeteroData: links of several types are not there yet; expected a Data"
        raise wrong("gnnd.link_loader()", Violation("data", text))
    if edge_label_time is not None:
        text = "given: a loader has only None (docs/loader.md#limits)"
        found.append(Violation("edge_label_time", text))
    if form == "blocks":
        text = "'blocks': not of links in this build; expected pyg, layers, tensors"
        found.append(Violation("form", text))
    if "input_nodes" in options:
        found.append(Violation("input_nodes", "a link_loader has edge_label_index in its place"))
    negatives = negatives_of(neg_sampling, neg_sampling_ratio)
    if negatives is not None and negatives.mode == "triplet" and edge_label is not None:
        text = "given: triplet has none, for its three indices tell what is a link; expected None"
        found.append(Violation("edge_label", text))
    if found:
        raise wrong("gnnd.link_loader()", *found)
    pairs = _pairs_of(data, edge_label_index)
    if edge_label is not None and len(edge_label) != pairs.shape[1]:
        text = f"{len(edge_label):,} labels: expected one of each of {pairs.shape[1]:,} links"
        raise wrong("gnnd.link_loader()", Violation("edge_label", text))
    items = LinkItems(pairs, edge_label, negatives, exclude=bool(exclude_links))
    return loader(data, num_neighbors, input_nodes=items, form=form, **options)


def _pairs_of(data: Any, given: Any) -> np.ndarray:
    """The links, [2, links]."""
    if given is None and not hasattr(data, "edge_index"):
        raise _wrong_links("None", "links, where data has no edge_index")
    pairs = data.edge_index if given is None else given
    if isinstance(pairs, tuple) and len(pairs) == 2 and isinstance(pairs[0], (str, tuple)):
        raise _wrong_links(shown(pairs[0]), "links alone: graphs have one relation")
    pairs = np.asarray(pairs.cpu() if hasattr(pairs, "cpu") else pairs)
    is_list = pairs.ndim == 2 and pairs.shape[0] == 2 and pairs.dtype.kind in "iu"
    if not is_list or pairs.shape[1] == 0:
        raise _wrong_links(f"{pairs.dtype} {list(pairs.shape)}", "integers [2, links], from 1 link")
    if pairs.min() < 0 or pairs.max() >= 2**32:
        raise _wrong_links(f"ids from {pairs.min()} to {pairs.max()}", "ids of nodes")
    num_nodes = getattr(data, "num_nodes", None)
    if num_nodes is not None and pairs.max() >= num_nodes:
        raise _wrong_links(f"node {pairs.max():,}", f"ids from 0 to {num_nodes - 1:,}")
    return pairs


def _wrong_links(what: str, expected: str) -> Exception:
    text = f"{what}: expected {expected}"
    return wrong("gnnd.link_loader()", Violation("edge_label_index", text))
