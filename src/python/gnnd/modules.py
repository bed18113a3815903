"""Parts of modules that compute what gnnd computes where torch_geometric's do not.

They are classes of a file, not of a function, so that `torch.save` takes a whole module. Needs
torch and torch_geometric.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.nn import GCNConv, models
from torch_geometric.utils import is_sparse, to_edge_index


def edges_of(graph: Any) -> Tensor:
    """[2, E] of what torch_geometric takes for a graph: that, or a transposed adjacency."""
    if not is_sparse(graph):
        return graph
    targets_above: Tensor = to_edge_index(graph)[0]
    return targets_above.flip([0])


class LoopedConv(GCNConv):  # type: ignore[misc]
    """A GCN's layer with one term of its own for every node, as gnnd and Kipf's A + I have it.

    torch_geometric's takes an edge from a node to itself, or several, *for* that term. Here such
    edges stand beside it: they count in the degrees and in the sum as often as they are there.
    """

    def __init__(self, in_channels: int, out_channels: int, **options: Any) -> None:
        super().__init__(in_channels, out_channels, **{**options, "normalize": False})

    def forward(self, x: Tensor, edge_index: Any, edge_weight: Tensor | None = None) -> Tensor:
        """[N, out] of [N, in]. Weights of edges have no part in it: gnnd's GCN reads none."""
        if edge_weight is not None:
            raise ValueError("edge_weight is given, and gnnd's GCN was trained without weights")
        loops = torch.arange(x.size(0), device=x.device).expand(2, -1)
        source, target = torch.cat([edges_of(edge_index), loops], dim=1)
        ones = x.new_ones(target.size(0))
        degrees = x.new_zeros(x.size(0)).scatter_add(0, target, ones)
        scales = degrees.rsqrt()
        return super().forward(x, torch.stack([source, target]), scales[source] * scales[target])


class GCN(models.GCN):  # type: ignore[misc]
    """torch_geometric's GCN of layers with a term of its own for every node."""

    def init_conv(self, in_channels: int, out_channels: int, **options: Any) -> LoopedConv:
        """What torch_geometric makes its layers with."""
        return LoopedConv(in_channels, out_channels, **options)


class UnitRows(nn.Module):  # type: ignore[misc]
    """Rows divided by their Euclidean norms."""

    def forward(self, x: Tensor) -> Tensor:
        """[N, F] of [N, F]."""
        return nn.functional.normalize(x)
