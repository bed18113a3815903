"""torch_geometric's modules of the models over several types and relations.

Each is composed of torch_geometric's own layers, HeteroConv of SAGEConv, RGCNConv and HGTConv, and
takes what `HeteroData` calls `x_dict` and `edge_index_dict`. Needs torch and torch_geometric, and
nothing else of gnnd's.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.nn import HeteroConv, HGTConv, RGCNConv, SAGEConv
from torch_geometric.nn.module_dict import ModuleDict

Relation = tuple[str, str, str]
Rows = dict[str, Tensor]
Edges = Mapping[Relation, Tensor]
State = Mapping[str, Tensor]


def _take(parameter: Tensor, value: Tensor) -> None:
    with torch.no_grad():
        parameter.copy_(value.reshape(parameter.shape))


def _fill_linear(linear: Any, state: State, name: str) -> None:
    _take(linear.weight, state[f"{name}.weight"])
    _take(linear.bias, state[f"{name}.bias"])


class Layer(nn.Module):  # type: ignore[misc]
    """One layer: rows of types from rows of types, along relations. `at` is its number."""

    def __init__(self, at: int, types: list[str], relations: list[Relation]) -> None:
        super().__init__()
        self.at, self.types, self.relations = at, types, relations

    def name(self, of: str) -> str:
        """In gnnd's state dict."""
        return f"convs.{self.at}.{of}"

    def edges(self, given: Edges) -> dict[Relation, Tensor]:
        """Those of the layer's relations."""
        return {key: given[key] for key in self.relations if key in given}


class SageLayer(Layer):
    """R-SAGE: a mean a relation through its matrix, and one matrix for rows of a type."""

    def __init__(self, at: int, types: list[str], relations: list[Relation], about: Any) -> None:
        super().__init__(at, types, relations)
        sizes = (about["hidden_dim"], about["hidden_dim"])
        out = _out_of(about, at)
        convs = {key: SAGEConv(sizes, out, root_weight=False, bias=False) for key in relations}
        with warnings.catch_warnings():
            # It warns of types without rows of their own in the next layer, which nobody reads.
            warnings.filterwarnings("ignore", "There exist node types")
            self.conv = HeteroConv(convs)
        self.root = ModuleDict({key: nn.Linear(sizes[0], out) for key in types})

    def fill(self, state: State) -> None:
        """Takes parameters by gnnd's names."""
        for key in self.relations:
            _take(self.conv.convs[key].lin_l.weight, state[self.name("__".join(key)) + ".weight"])
        for kind in self.types:
            _take(self.root[kind].weight, state[self.name(kind) + ".root.weight"])
            _take(self.root[kind].bias, state[self.name(kind) + ".bias"])

    def forward(self, x: Rows, edges: Edges) -> Rows:
        """Rows of the layer's types."""
        means = self.conv(x, self.edges(edges))
        return {key: self.root[key](x[key]) + means.get(key, 0) for key in self.types}


class GcnLayer(Layer):
    """R-GCN: RGCNConv over the rows of all types, one below the other."""

    def __init__(self, at: int, types: list[str], relations: list[Relation], about: Any) -> None:
        super().__init__(at, types, relations)
        bases = about["bases"] or None
        hidden, out = about["hidden_dim"], _out_of(about, at)
        self.conv = RGCNConv(hidden, out, len(relations), num_bases=bases)

    def fill(self, state: State) -> None:
        """Takes parameters by gnnd's names."""
        if self.conv.comp is None:
            names = [self.name("__".join(key)) + ".weight" for key in self.relations]
            _take(self.conv.weight, torch.stack([state[name].t() for name in names]))
        else:
            _take(self.conv.weight, state[self.name("weight")].transpose(1, 2))
            _take(self.conv.comp, state[self.name("comp")])
        _take(self.conv.root, state[self.name("root")].t())
        _take(self.conv.bias, state[self.name("bias")])

    def forward(self, x: Rows, edges: Edges) -> Rows:
        """Rows of the layer's types."""
        first, total = {}, 0
        for key, rows in x.items():
            first[key] = total
            total += rows.size(0)
        given = self.edges(edges)
        shifted = [
            edge_index + torch.tensor([[first[key[0]]], [first[key[2]]]], device=edge_index.device)
            for key, edge_index in given.items()
        ]
        numbers = [
            torch.full_like(edge_index[0], self.relations.index(key))
            for key, edge_index in given.items()
        ]
        stacked = torch.cat(list(x.values()))
        if given:
            rows = self.conv(stacked, torch.cat(shifted, 1), torch.cat(numbers))
        else:
            rows = stacked @ self.conv.root + self.conv.bias
        return {key: rows[first[key] : first[key] + x[key].size(0)] for key in self.types}


class HgtLayer(Layer):
    """HGT: attention over all relations of a row. A type that none leads to keeps its rows."""

    def __init__(self, at: int, types: list[str], relations: list[Relation], about: Any) -> None:
        super().__init__(at, types, relations)
        ends = {end for key in relations for end in (key[0], key[2])}
        self.known = [name for name in _names_of(about) if name in ends]
        self.conv = HGTConv(
            about["hidden_dim"], about["hidden_dim"], (self.known, relations), about["heads"]
        )

    def fill(self, state: State) -> None:
        """Takes parameters by gnnd's names; what no relation reads stays 0."""
        for parameter in self.conv.parameters():
            nn.init.zeros_(parameter)
        for kind in self.known:
            self._fill_type(kind, state)
        for number, key in enumerate(self.relations):
            name = self.name("__".join(key))
            for linear, of in ((self.conv.k_rel, "a_rel"), (self.conv.v_rel, "m_rel")):
                # Those of a head stand side by side, of matrices [in, out].
                places = linear.weight[number :: len(self.relations)]
                _take(places, state[f"{name}.{of}"].transpose(1, 2))
            _take(self.conv.p_rel["__".join(key)], state[f"{name}.p_rel"])

    def _fill_type(self, key: str, state: State) -> None:
        linear = self.conv.kqv_lin.lins[key]
        width = linear.weight.size(0) // 3
        for part, of in enumerate("kqv"):
            name = self.name(f"{key}.{of}")
            if f"{name}.weight" in state:
                rows = slice(part * width, (part + 1) * width)
                _take(linear.weight[rows], state[f"{name}.weight"])
                _take(linear.bias[rows], state[f"{name}.bias"])
        if self.name(f"{key}.skip") in state:
            _fill_linear(self.conv.out_lin.lins[key], state, self.name(f"{key}.a"))
            _take(self.conv.skip[key], state[self.name(f"{key}.skip")])

    def forward(self, x: Rows, edges: Edges) -> Rows:
        """Rows of the layer's types."""
        given = self.edges(edges)
        for key in self.relations:
            given.setdefault(key, torch.zeros(2, 0, dtype=torch.long, device=x[key[0]].device))
        made = self.conv({key: x[key] for key in self.known}, given)
        return {key: made.get(key, x[key]) for key in self.types}


class UnitRows(nn.Module):  # type: ignore[misc]
    """Rows divided by their Euclidean norms."""

    def forward(self, x: Tensor) -> Tensor:
        """[N, F] of [N, F]."""
        return nn.functional.normalize(x)


#: By their names in a job spec.
_LAYERS = {"RSAGE": SageLayer, "RGCN": GcnLayer, "HGT": HgtLayer}
TYPES = tuple(_LAYERS)
_ACTIVATIONS = {"RELU": nn.ReLU, "ELU": nn.ELU, "LEAKY_RELU": nn.LeakyReLU}


class RelationModel(nn.Module):  # type: ignore[misc]
    """A model over several types, of the part `model` of an export.json (dropout of training)."""

    def __init__(self, about: Mapping[str, Any], *, dropout: float = 0.0) -> None:
        super().__init__()
        self.about = dict(about)
        self.is_attention = about["type"] == "HGT"
        needs = _needs_of(about)
        dims = {kind["name"]: kind["in_dim"] for kind in about["graph"]["types"]}
        hidden = about["hidden_dim"]
        self.lin_in = ModuleDict({key: nn.Linear(dims[key], hidden) for key in needs[0]})
        make = _LAYERS[about["type"]]
        self.convs = nn.ModuleList(
            make(at, needs[at + 1], _taken(about, needs[at + 1]), about)
            for at in range(about["layers"])
        )
        self.norms = nn.ModuleList(
            ModuleDict({key: _norm_of(about) for key in layer.types})
            for layer in self.convs
            if self.is_attention or layer.at + 1 < about["layers"]
        )
        self.act = nn.Identity() if self.is_attention else _ACTIVATIONS[about["activation"]]()
        self.dropout = nn.Dropout(dropout)
        self.lin_out = nn.Linear(hidden, about["out_dim"]) if self.is_attention else nn.Identity()

    def fill(self, state: State) -> None:
        """Takes parameters by gnnd's names, those of `job.state_dict()`."""
        for key, linear in self.lin_in.items():
            _fill_linear(linear, state, f"lin_in.{key}")
        for layer in self.convs:
            layer.fill(state)
        if self.about["normalization"] == "LAYER":
            for at, norms in enumerate(self.norms):
                for key, norm in norms.items():
                    _fill_linear(norm, state, f"norms.{at}.{key}")
        if self.is_attention:
            _fill_linear(self.lin_out, state, "lin_out")

    def forward(self, x_dict: Rows, edge_index_dict: Edges) -> Tensor:
        """Logits [N, C] of the learnt type, of features [N, F] a type and edges [2, E]."""
        rows = {key: linear(x_dict[key]) for key, linear in self.lin_in.items()}
        for layer in self.convs:
            made = layer(rows, edge_index_dict)
            if layer.at < len(self.norms):
                made = {key: self._finished(layer.at, key, z, rows[key]) for key, z in made.items()}
            rows = made
        return self.lin_out(rows[self.about["graph"]["types"][0]["name"]])

    def _finished(self, at: int, key: str, z: Tensor, own: Tensor) -> Tensor:
        if self.about["residual"]:
            z = z + own
        norm = self.norms[at][key]
        if self.about["normalization"] == "LAYER":
            return self.dropout(self.act(norm(z)))
        return self.dropout(norm(self.act(z)))


def _out_of(about: Any, at: int) -> int:
    return int(about["out_dim"] if at + 1 == about["layers"] else about["hidden_dim"])


def _norm_of(about: Any) -> nn.Module:
    if about["normalization"] == "LAYER":
        return nn.LayerNorm(about["hidden_dim"])
    return UnitRows() if about["normalization"] == "L2" else nn.Identity()


def _names_of(about: Any) -> list[str]:
    return [kind["name"] for kind in about["graph"]["types"]]


def _relations_of(about: Any) -> list[Relation]:
    return [(r["source"], r["name"], r["destination"]) for r in about["graph"]["relations"]]


def _taken(about: Any, types: list[str]) -> list[Relation]:
    """The relations that a layer aggregates along, which gives rows of these types."""
    return [key for key in _relations_of(about) if key[2] in types]


def _needs_of(about: Any) -> list[list[str]]:
    """Types whose rows matter before each layer, and behind the last one."""
    needs = [_names_of(about)[:1]]
    for _ in range(about["layers"]):
        wanted = {*needs[0], *(key[0] for key in _taken(about, needs[0]))}
        needs.insert(0, [name for name in _names_of(about) if name in wanted])
    return needs
