"""What scores pairs of rows, with the parameters that gnnd gives it. Needs nothing but torch.

A head takes rows of n sources and of n destinations, [n, D] each, and gives a score of each pair,
[n] float32; that of a job that learns what is known of links (`LINK_LABELS`) gives [n, outputs]
where there are several. docs/links.md has the formulas.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn
from torch.nn import functional

_PREFIX = "head."


class Dot(nn.Module):  # type: ignore[misc]
    """Their scalar product."""

    def forward(self, sources: Tensor, destinations: Tensor) -> Tensor:
        """Scores of pairs."""
        return (sources * destinations).sum(dim=-1)


class Cosine(nn.Module):  # type: ignore[misc]
    """The cosine of the angle between them."""

    def forward(self, sources: Tensor, destinations: Tensor) -> Tensor:
        """Scores of pairs."""
        return (functional.normalize(sources) * functional.normalize(destinations)).sum(dim=-1)


class DistMult(nn.Module):  # type: ignore[misc]
    """A scalar product in which each column has a weight: torch_geometric's, of one relation."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.rel_emb = nn.Embedding(1, dim)

    def forward(self, sources: Tensor, destinations: Tensor) -> Tensor:
        """Scores of pairs."""
        return (sources * self.rel_emb.weight[0] * destinations).sum(dim=-1)


class Bilinear(nn.Module):  # type: ignore[misc]
    """A matrix between them."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.lin = nn.Linear(dim, dim, bias=False)

    def forward(self, sources: Tensor, destinations: Tensor) -> Tensor:
        """Scores of pairs."""
        return (self.lin(sources) * destinations).sum(dim=-1)


class Mlp(nn.Module):  # type: ignore[misc]
    """A perceptron with one hidden layer over their product and both of them."""

    def __init__(self, dim: int, outputs: int) -> None:
        super().__init__()
        self.lin_product = nn.Linear(dim, dim)
        self.lin_source = nn.Linear(dim, dim, bias=False)
        self.lin_destination = nn.Linear(dim, dim, bias=False)
        self.lin_out = nn.Linear(dim, outputs)

    def forward(self, sources: Tensor, destinations: Tensor) -> Tensor:
        """Scores of pairs, or [n, outputs]."""
        hidden = self.lin_product(sources * destinations)
        hidden = hidden + self.lin_source(sources) + self.lin_destination(destinations)
        outputs = self.lin_out(hidden.relu())
        return outputs.squeeze(-1) if outputs.size(-1) == 1 else outputs


class LinkModel(nn.Module):  # type: ignore[misc]
    """An encoder, which makes rows of nodes, and the head that scores pairs of them."""

    def __init__(self, encoder: nn.Module, head: nn.Module) -> None:
        super().__init__()
        self.encoder = encoder
        self.head = head

    def forward(self, *inputs: Tensor) -> Tensor:
        """Scores of `edge_label_index` [2, n], the last one; `encoder` takes those before it."""
        *given, edge_label_index = inputs
        rows = self.encoder(*given)
        return self.head(rows[edge_label_index[0]], rows[edge_label_index[1]])


def encoder_part(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters that are no head's."""
    return {name: value for name, value in parameters.items() if not name.startswith(_PREFIX)}


def made(kind: str, parameters: Mapping[str, Tensor]) -> nn.Module:
    """The head of `links.head`, with its share of a model's parameters, in evaluation mode."""
    own = {
        name.removeprefix(_PREFIX): value
        for name, value in parameters.items()
        if name.startswith(_PREFIX)
    }
    head = _empty(kind, own)
    head.load_state_dict(own)
    return head.eval()


def _empty(kind: str, own: Mapping[str, Tensor]) -> nn.Module:
    if kind == "DISTMULT":
        return DistMult(own["rel_emb.weight"].numel())
    if kind == "BILINEAR":
        return Bilinear(own["lin.weight"].size(0))
    if kind == "MLP":
        outputs, dim = own["lin_out.weight"].shape
        return Mlp(dim, outputs)
    return {"DOT": Dot, "COSINE": Cosine}[kind]()
