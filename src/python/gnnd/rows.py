"""SGC, SIGN and HOGA as plain PyTorch modules, which need nothing but torch.

Parameters have the names of gnnd's checkpoints; native/train/layers/row_model.cc computes the same.
Modules but SGC's take [n, tokens, F] rows: hop 0, then hops 1 to R of each operator in turn.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn


class SGC(nn.Module):  # type: ignore[misc]
    """One linear layer over the last hop, [n, F]."""

    def __init__(self, features: int, classes: int) -> None:
        super().__init__()
        self.lin = nn.Linear(features, classes)

    def forward(self, x: Tensor) -> Tensor:
        """[n, classes] logits of [n, features] rows."""
        return self.lin(x)


class _OverTokens(nn.Module):  # type: ignore[misc]
    """What modules that read several tokens have in common."""

    def __init__(self, hops: int, operators: int, dropout: float) -> None:
        super().__init__()
        self.hop_count, self.operators, self.p = hops, operators, dropout
        self.tokens = 1 + operators * hops

    def _drop(self, x: Tensor) -> Tensor:
        return nn.functional.dropout(x, self.p, self.training)


class SIGN(_OverTokens):
    """A perceptron over all tokens; with `concat` each hop has a projection of its own first."""

    def __init__(
        self,
        features: int,
        hidden: int,
        classes: int,
        *,
        hops: int,
        operators: int = 1,
        layers: int = 3,
        concat: bool = False,
        dropout: float = 0.5,
    ) -> None:
        super().__init__(hops, operators, dropout)
        self.concat = concat
        width = self.tokens * features
        if concat:
            sources = [1] + [operators] * hops
            self.hops = nn.ModuleList(nn.Linear(n * features, hidden, bias=False) for n in sources)
            self.act = nn.PReLU()
            width, layers = (hops + 1) * hidden, layers - 1
        widths = [width] + [hidden] * (layers - 1) + [classes]
        self.lins = nn.ModuleList(map(nn.Linear, widths, widths[1:]))
        self.norms = nn.ModuleList(nn.BatchNorm1d(hidden) for _ in range(layers - 1))

    def forward(self, z: Tensor) -> Tensor:
        """[n, classes] logits of [n, tokens, features] rows."""
        h = self._projected(z) if self.concat else z.flatten(1)
        for lin, norm in zip(self.lins, self.norms, strict=False):
            h = self._drop(norm(lin(h)).relu())
        return self.lins[-1](h)

    def _projected(self, z: Tensor) -> Tensor:
        own = [self.hops[0](z[:, 0])]
        for hop in range(1, self.hop_count + 1):
            of_operators = z[:, hop :: self.hop_count]
            own.append(self.hops[hop](of_operators.flatten(1)))
        return self._drop(self.act(torch.cat(own, 1)))


class _Hop(nn.Module):  # type: ignore[misc]
    """The perceptron of one token, PReLU between its layers."""

    def __init__(self, widths: list[int]) -> None:
        super().__init__()
        self.lins = nn.ModuleList(map(nn.Linear, widths, widths[1:]))
        self.acts = nn.ModuleList(nn.PReLU() for _ in widths[2:])


class HOGA(_OverTokens):
    """Attention among a node's tokens: gated sums, or with `dac24` those of the first paper."""

    def __init__(
        self,
        features: int,
        hidden: int,
        classes: int,
        *,
        hops: int,
        heads: int,
        operators: int = 1,
        layers: int = 1,
        dac24: bool = False,
        hop_layers: int = 0,
        hop_hidden: int = 0,
        residual: bool = False,
        dropout: float = 0.5,
        attention_dropout: float = 0.0,
    ) -> None:
        super().__init__(hops, operators, dropout)
        self.dac24, self.residual = dac24, residual

        def attention() -> Any:
            return nn.MultiheadAttention(hidden, heads, attention_dropout, batch_first=True)

        self.layers = nn.ModuleList()
        for _ in range(layers):
            layer = nn.Module()
            layer.gate = nn.Linear(hidden, hidden, bias=False)
            layer.attn = attention()
            layer.norm = nn.LayerNorm(hidden)
            self.layers.append(layer)
        if dac24:
            self.lin = nn.Linear(features, hidden)
            self.alpha = nn.Linear(2 * hidden, 1, bias=False)
            self.lin1, self.lin2 = nn.Linear(hidden, hidden), nn.Linear(hidden, classes)
            self.bn = nn.BatchNorm1d(hidden)
            return
        widths = [features] + [hop_hidden] * (hop_layers - 1) + [hidden]
        self.hops = nn.ModuleList(
            _Hop(widths) if hop_layers > 0 else nn.Linear(features, hidden, bias=False)
            for _ in range(self.tokens)
        )
        # The token before each one but the first: of the same operator, or hop 0.
        places = [(op, hop) for op in range(operators) for hop in range(hops)]
        before = torch.tensor([op * hops + hop if hop > 0 else 0 for op, hop in places])
        self.register_buffer("before", before, persistent=False)
        self.last_gate = nn.Linear(hidden, hidden, bias=False)
        self.last = attention()
        if residual:
            self.res = nn.Linear(features, hidden, bias=False)
            self.res_act = nn.PReLU()
        self.norm = nn.LayerNorm(hidden)
        self.out = nn.Linear(hidden, classes, bias=False)

    def forward(self, z: Tensor) -> Tensor:
        """[n, classes] logits of [n, tokens, features] rows."""
        return self._by_first_paper(z) if self.dac24 else self._gated(z)

    def _gated(self, z: Tensor) -> Tensor:
        h = self._drop(self._hops(z))
        for layer in self.layers:
            read = layer.attn(h, h, h, need_weights=False)[0]
            previous = h[:, self.before]
            gate = layer.gate(previous).sigmoid()
            mixed = gate * read[:, 1:] + (1 - gate) * previous
            h = self._drop(layer.norm(torch.cat([read[:, :1], mixed], 1)).relu())
        own = h[:, :1]
        read = self.last(own, h, h, need_weights=False)[0]
        x = (self.last_gate(own).sigmoid() * read)[:, 0]
        if self.residual:
            x = self._drop(self.res_act(x + self.res(z[:, 0])))
        return self.out(self.norm(x))

    def _hops(self, z: Tensor) -> Tensor:
        hidden = []
        for token, hop in enumerate(self.hops):
            h = z[:, token]
            if isinstance(hop, _Hop):
                for lin, act in zip(hop.lins, hop.acts, strict=False):
                    h = self._drop(act(lin(h)))
            hidden.append(hop.lins[-1](h) if isinstance(hop, _Hop) else hop(h))
        return torch.stack(hidden, 1)

    def _by_first_paper(self, z: Tensor) -> Tensor:
        h = self.lin(z)
        for layer in self.layers:
            read = layer.attn(h, h, h, need_weights=False)[0]
            h = self._drop(layer.norm(layer.gate(h) * read).relu())
        own, others = h[:, :1], h[:, 1:]
        share = self.alpha(torch.cat([own.expand_as(others), others], 2)).softmax(1)
        y = own[:, 0] + (share * others).sum(1)
        return self.lin2(self._drop(self.bn(self.lin1(y).relu())))


def made(facts: Mapping[str, Any], spec: Mapping[str, Any]) -> Any:
    """The module of an export.json and an effective spec, without its parameters."""
    about, given = facts["model"], spec.get("model", {})
    sizes = [about["in_dim"], about["out_dim"]]
    if about["type"] == "SGC":
        return SGC(*sizes)
    sizes.insert(1, about["hidden_dim"])
    rows = facts["rows"]
    options = {
        "hops": rows["hops"],
        "operators": len(rows["operators"]),
        "layers": about["layers"],
        "dropout": given.get("dropout", 0.0),
    }
    if about["type"] == "SIGN":
        return SIGN(*sizes, concat=given.get("variant") == "CONCAT", **options)
    return HOGA(
        *sizes,
        heads=about["heads"],
        dac24=given.get("variant") == "DAC24",
        hop_layers=given.get("hop_layers", 0),
        hop_hidden=given.get("hop_hidden_dim", 0),
        residual=about["residual"],
        attention_dropout=given.get("attention_dropout", 0.0),
        **options,
    )
