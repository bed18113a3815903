"""torch_geometric's module of each kind of model, and parts where its own compute something else.

They are classes of a file, not of a function, so that `torch.save` takes a whole module. Needs
torch and torch_geometric, and nothing else of gnnd's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.nn import MLP, GCNConv, GINConv, TransformerConv, models
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


class GIN(models.GIN):  # type: ignore[misc]
    """torch_geometric's GIN with trained epsilons, whose perceptrons are as wide as the model."""

    def init_conv(self, in_channels: int, out_channels: int, **options: Any) -> GINConv:
        """What torch_geometric makes its layers with."""
        widths = [in_channels, self.hidden_channels, out_channels]
        return GINConv(MLP(widths, act=self.act, norm=None), train_eps=True, **options)


class Transformer(models.GAT):  # type: ignore[misc]
    """torch_geometric's GAT with layers of its TransformerConv."""

    def init_conv(self, in_channels: int, out_channels: int, **options: Any) -> TransformerConv:
        """What torch_geometric makes its layers with; the last averages its heads."""
        is_last = getattr(self, "_is_conv_to_out", False)
        heads = options["heads"]
        columns = out_channels if is_last else out_channels // heads
        return TransformerConv(in_channels, columns, heads=heads, concat=not is_last)


class UnitRows(nn.Module):  # type: ignore[misc]
    """Rows divided by their Euclidean norms."""

    def forward(self, x: Tensor) -> Tensor:
        """[N, F] of [N, F]."""
        return nn.functional.normalize(x)


@dataclass(frozen=True)
class Kind:
    """How torch_geometric computes a kind of model."""

    #: What makes the module: of columns and layers, then options.
    make: Callable[..., Any]
    #: Options of this kind, whatever the model is.
    options: Mapping[str, Any] = field(default_factory=dict)
    #: Options that have the same names in an export.json.
    copied: tuple[str, ...] = ()
    #: Whether it has means over neighbours, which torch_geometric does not weigh by edges.
    is_mean: bool = False
    #: Whether layers drop edges from a node to itself, and add them again.
    has_own_loops: bool = False

    @property
    def name(self) -> str:
        """The class's."""
        return str(self.make.__name__)


#: By their names in a job spec.
KINDS = {
    "GRAPHSAGE": Kind(models.GraphSAGE, is_mean=True),
    "GCN": Kind(GCN),
    "GAT": Kind(models.GAT, {"v2": False}, ("heads", "residual"), has_own_loops=True),
    "GATV2": Kind(models.GAT, {"v2": True}, ("heads", "residual")),
    "PINSAGE": Kind(models.GraphSAGE, {"project": True}, is_mean=True),
    "GIN": Kind(GIN),
    "TRANSFORMER": Kind(Transformer, copied=("heads",)),
}


def made(about: Mapping[str, Any], *, dropout: float = 0.0) -> Any:
    """The module of the part `model` of an export.json, which must be of one of `KINDS`."""
    kind = KINDS[about["type"]]
    options: dict[str, Any] = {"act": about["activation"].lower(), "dropout": dropout}
    norm = about["normalization"]
    if norm == "LAYER":
        options |= {"norm": "layer_norm", "norm_kwargs": {"mode": "node"}}
    if norm == "L2":
        options |= {"norm": UnitRows(), "act_first": True}
    options |= {**kind.options, **{name: about[name] for name in kind.copied}}
    sizes = (about["in_dim"], about["hidden_dim"], about["layers"], about["out_dim"])
    return kind.make(*sizes, **options)
