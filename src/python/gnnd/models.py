"""The networks that gnnd trains, as values to hand to `Client.submit`.

Whatever is None has the default of docs/job-spec.md. Widths count columns, dropouts are shares from
0 up to 1 (exclusive).
"""

from __future__ import annotations

import os
from dataclasses import dataclass, fields
from typing import Any, ClassVar

from gnnd.errors import Violation
from gnnd.keywords import Keywords
from gnnd.words import meaning, nearest, shown

__all__ = [
    "GAT",
    "GCN",
    "GIN",
    "HGT",
    "HOGA",
    "RGCN",
    "RSAGE",
    "SGC",
    "SIGN",
    "GATv2",
    "GraphSAGE",
    "Model",
    "PinSAGE",
    "TorchScript",
    "Transformer",
]


@dataclass(frozen=True, kw_only=True)
class Model(Keywords):
    """What all networks have in common."""

    #: Name in the job spec.
    type: ClassVar[str]
    #: What a field is called in the spec, where that differs.
    names: ClassVar[dict[str, str]] = {"hidden": "hidden_dim"}

    #: Number of layers; by default one for each fanout.
    layers: int | None = None

    def spec(self) -> dict[str, Any]:
        """The parts of a job spec that follow from the model, as nested mappings."""
        values = {self.names.get(f.name, f.name): getattr(self, f.name) for f in fields(self)}
        return {"model": {"type": self.type, **values}}


@dataclass(frozen=True, kw_only=True)
class Layered(Model):
    """Networks of layers over sampled neighbourhoods."""

    #: Columns of hidden layers.
    hidden: int | None = None
    #: Share of hidden activations that is dropped while training.
    dropout: float | None = None
    #: Share of input features that is dropped while training.
    input_dropout: float | None = None
    #: `"RELU"`, `"ELU"` or `"LEAKY_RELU"`.
    activation: str | None = None
    #: `"NONE"`, `"L2"` or `"LAYER"`.
    normalization: str | None = None
    #: Whether a layer's input is added to its output.
    residual: bool | None = None


@dataclass(frozen=True, kw_only=True)
class GraphSAGE(Layered):
    """GraphSAGE with means (Hamilton et al. 2017)."""

    type: ClassVar[str] = "GRAPHSAGE"


@dataclass(frozen=True, kw_only=True)
class GCN(Layered):
    """Graph convolution (Kipf and Welling 2017)."""

    type: ClassVar[str] = "GCN"


@dataclass(frozen=True, kw_only=True)
class GIN(Layered):
    """Graph isomorphism network (Xu et al. 2019): a perceptron on sums, with a trained epsilon.

    Sums are over the neighbours that were drawn: where fanouts are below degrees, submit with
    `algorithm="LABOR"`, whose weights keep sums unbiased, or with evaluations on samples.
    """

    type: ClassVar[str] = "GIN"


@dataclass(frozen=True, kw_only=True)
class GAT(Layered):
    """Graph attention (Veličković et al. 2018). `heads` divides `hidden`."""

    type: ClassVar[str] = "GAT"
    #: Attention heads; hidden layers concatenate them, the last one averages.
    heads: int | None = None
    #: Share of attention coefficients that is dropped while training.
    attention_dropout: float | None = None


@dataclass(frozen=True, kw_only=True)
class GATv2(GAT):
    """Graph attention with dynamic scores (Brody et al. 2022)."""

    type: ClassVar[str] = "GATV2"


@dataclass(frozen=True, kw_only=True)
class Transformer(GAT):
    """Attention by products of queries and keys (Shi et al. 2021), plus each node's own row."""

    type: ClassVar[str] = "TRANSFORMER"


@dataclass(frozen=True, kw_only=True)
class PinSAGE(Layered):
    """PinSAGE (Ying et al. 2018): neighbours are the most visited nodes of random walks."""

    type: ClassVar[str] = "PINSAGE"

    def spec(self) -> dict[str, Any]:
        """With the only sampling that it takes."""
        return {**super().spec(), "sampling": {"algorithm": "RANDOM_WALK"}}


@dataclass(frozen=True, kw_only=True)
class RSAGE(Layered):
    """GraphSAGE over several types: a mean and a matrix for each relation, summed.

    As the others over several types it takes a dataset of several types (docs/typed.md). Features
    of each type are projected to `hidden` columns first.
    """

    type: ClassVar[str] = "RSAGE"


@dataclass(frozen=True, kw_only=True)
class RGCN(Layered):
    """Relational graph convolution (Schlichtkrull et al. 2018), over several types."""

    type: ClassVar[str] = "RGCN"
    #: Matrices of which those of the relations are sums; 0: each relation has its own.
    bases: int | None = None


@dataclass(frozen=True, kw_only=True)
class HGT(Layered):
    """Heterogeneous graph transformer (Hu et al. 2020). `heads` divides `hidden`."""

    type: ClassVar[str] = "HGT"
    #: Attention heads.
    heads: int | None = None
    #: Share of attention coefficients that is dropped while training.
    attention_dropout: float | None = None


@dataclass(frozen=True, kw_only=True)
class SGC(Model):
    """One linear layer over features that were propagated before (Wu et al. 2019)."""

    type: ClassVar[str] = "SGC"
    #: How often features are multiplied by the operator.
    hops: int | None = None
    #: Share of input features that is dropped while training.
    input_dropout: float | None = None

    def spec(self) -> dict[str, Any]:
        """With the part on propagation."""
        parts = super().spec()
        hops = parts["model"].pop("hops")
        return {**parts, "propagation": {"hops": hops}}


@dataclass(frozen=True, kw_only=True)
class SIGN(SGC):
    """A perceptron over all hops of propagated features (Frasca et al. 2020)."""

    type: ClassVar[str] = "SIGN"
    #: Columns of hidden layers.
    hidden: int | None = None
    #: Share of hidden activations that is dropped while training.
    dropout: float | None = None
    #: `"FUSED"` or `"CONCAT"`.
    variant: str | None = None


@dataclass(frozen=True, kw_only=True)
class HOGA(SIGN):
    """Attention over the hops of propagated features (Deng et al. 2024).

    Its variants are `"GATED"` and `"DAC24"`.
    """

    type: ClassVar[str] = "HOGA"
    #: Attention heads.
    heads: int | None = None
    #: Share of attention coefficients that is dropped while training.
    attention_dropout: float | None = None
    #: Whether the projected features are added to what attention read.
    residual: bool | None = None
    #: Layers of the perceptron that each hop goes through; 0: a projection.
    hop_layers: int | None = None
    #: Columns within those perceptrons.
    hop_hidden_dim: int | None = None


@dataclass(frozen=True, kw_only=True)
class TorchScript(Model):
    """A model of your own (docs/plugins.md)."""

    type: ClassVar[str] = "TORCHSCRIPT"
    #: Absolute path on the daemon's host, in its `plugins_dir`.
    path: str | os.PathLike[str]

    def spec(self) -> dict[str, Any]:
        """With the file in its place."""
        return {"model": {"type": self.type, "layers": self.layers, "script": {"path": self.path}}}


def wrong_model(model: Any) -> list[Violation]:
    """What is wrong with the argument `model` of `Client.submit`."""
    if isinstance(model, Model):
        return []
    if isinstance(model, type) and issubclass(model, Model):
        made = f"gnnd.{model.__name__}()"
        return [Violation("model", f"{model.__name__} is a class: expected a model, {made}")]
    kinds = {kind.type: kind.__name__ for kind in _kinds(Model)}
    names = list(kinds.values())
    meant = kinds.get(meaning(model) or "") or nearest(model, names)
    example = "such as gnnd.GCN()" if meant is None else f"gnnd.{meant}()"
    text = f"expected a model, {example}; there are {', '.join(names)} (docs/choosing.md)"
    return [Violation("model", f"{shown(model)}: {text}")]


def _kinds(above: type[Model]) -> list[type[Model]]:
    """The networks below a class, in the order of this file."""
    below = [each for kind in above.__subclasses__() for each in (kind, *_kinds(kind))]
    return [kind for kind in below if kind.__name__ in __all__]
