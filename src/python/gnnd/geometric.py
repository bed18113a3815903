"""Modules of torch_geometric and of plain PyTorch with gnnd's parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from gnnd.errors import GnndError, missing

if TYPE_CHECKING:
    from gnnd import modules


def tensors(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Arrays as torch tensors over the same memory."""
    torch = torch_of("job.state_dict()")
    return {name: torch.from_numpy(array) for name, array in parameters.items()}


def module(facts: Mapping[str, Any], spec: Mapping[str, Any], parameters: Mapping[str, Any]) -> Any:
    """What `Job.to_pyg` says, of an export.json, an effective spec and parameters."""
    torch_of("job.to_pyg()")
    try:
        from gnnd import modules, relations
    except ImportError:
        raise missing("torch_geometric", "pyg", "job.to_pyg()") from None
    about = facts["model"]
    if about["type"] in relations.TYPES:
        return _typed(relations.RelationModel, facts, spec, parameters)
    _refuse_others(modules.KINDS.get(about["type"]), about, spec)
    made = modules.made(about, dropout=spec.get("model", {}).get("dropout", 0.0))
    _fill(made, parameters)
    if facts["standardized_features"]:
        _refuse_lost(facts)
        made = standardizing(made, facts["feature_mean"], facts["feature_deviation"])
    return _scored(made, spec, parameters)


def any_module(
    facts: Mapping[str, Any], spec: Mapping[str, Any], parameters: Mapping[str, Any]
) -> Any:
    """What `Job.to_torch` says, of the same."""
    if facts["rows"] is None:
        return module(facts, spec, parameters)
    torch_of("job.to_torch()")
    from gnnd import rows

    made = rows.made(facts, spec)
    _fill(made, parameters)
    about = facts["rows"]
    if about["standardized"]:
        if about["mean"] is None:
            raise GnndError(
                "the job standardised rows, and its propagation, which has their means, is gone: "
                "propagate again (docs/pre-propagation.md); job.state_dict() has the parameters"
            )
        of_tokens = (about["mean"], about["deviation"])
        last = facts["model"]["type"] == "SGC"
        mean, deviation = (values[-1] if last else values for values in of_tokens)
        made = standardizing(made, mean, deviation)
    return _scored(made, spec, parameters)


def _typed(make: Any, facts: Mapping[str, Any], spec: Any, parameters: Mapping[str, Any]) -> Any:
    """A module over several types, of rows as they were imported."""
    made = make(facts["model"], dropout=spec.get("model", {}).get("dropout", 0.0))
    made.fill(tensors(parameters))
    if facts["standardized_features"]:
        from gnnd.standardized import StandardizedTypes

        _refuse_lost(facts)
        made = StandardizedTypes(made, facts["feature_mean"], facts["feature_deviation"])
    return made.eval()


def _refuse_lost(facts: Mapping[str, Any]) -> None:
    if facts["feature_mean"] is None:
        raise GnndError(
            "the job standardised features, and its dataset, which has their means, is gone; "
            "job.state_dict() has the parameters"
        )


def _fill(made: Any, parameters: Mapping[str, Any]) -> None:
    from gnnd import heads

    made.load_state_dict(tensors(heads.encoder_part(parameters)))
    made.eval()


def _scored(encoder: Any, spec: Mapping[str, Any], parameters: Mapping[str, Any]) -> Any:
    """The encoder, and where pairs of its rows are scored what does that."""
    if spec.get("task", "NODES") == "NODES":
        return encoder
    from gnnd import heads

    head = heads.made(spec.get("links", {}).get("head", "DOT"), tensors(parameters))
    return heads.LinkModel(encoder, head).eval()


def _refuse_others(kind: modules.Kind | None, about: Mapping[str, Any], spec: Any) -> None:
    called = about["type"]
    if kind is None:
        raise GnndError(
            "a TORCHSCRIPT model is a class of its author's (docs/plugins.md), which takes "
            "job.state_dict()"
            if called == "TORCHSCRIPT"
            else f"torch_geometric has no module of a {called}; job.to_torch() has one of plain "
            "PyTorch, over propagated rows (docs/pre-propagation.md)"
        )
    if about["residual"] and "residual" not in kind.copied:
        raise GnndError(
            f"torch_geometric's {kind.name} has no residual connections; job.state_dict() has "
            "the parameters (docs/formats/checkpoint.md says what a layer computes)"
        )
    if kind.is_mean and spec.get("sampling", {}).get("algorithm") == "KHOP_WEIGHTED":
        raise GnndError(
            "the job's means are weighted by edges, and those of torch_geometric's GraphSAGE are "
            "not; job.predict() predicts with weights, job.state_dict() has the parameters"
        )


def torch_of(what: str) -> Any:
    """PyTorch, which `what` needs."""
    try:
        import torch
    except ImportError:
        raise missing("torch", "pyg", what) from None
    return torch


def standardizing(model: Any, mean: Any, deviation: Any) -> Any:
    """`model` behind (x - mean) / deviation of every column, in double precision."""
    from gnnd import standardized

    return standardized.Standardized(model, mean, deviation).eval()
