"""Modules of torch_geometric and of plain PyTorch with gnnd's parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gnnd.errors import GnndError, missing

#: torch_geometric's names of models. GCN is our own class of that name (`gnnd.modules`).
_CLASSES = {
    "GRAPHSAGE": "GraphSAGE",
    "PINSAGE": "GraphSAGE",
    "GCN": "GCN",
    "GAT": "GAT",
    "GATV2": "GAT",
}


def tensors(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Arrays as torch tensors over the same memory."""
    torch = torch_of("job.state_dict()")
    return {name: torch.from_numpy(array) for name, array in parameters.items()}


def module(facts: Mapping[str, Any], spec: Mapping[str, Any], parameters: Mapping[str, Any]) -> Any:
    """What `Job.to_pyg` says, of an export.json, an effective spec and parameters."""
    torch_of("job.to_pyg()")
    try:
        from torch_geometric.nn import models
    except ImportError:
        raise missing("torch_geometric", "pyg", "job.to_pyg()") from None
    from gnnd import modules

    about = facts["model"]
    _refuse_others(about, spec)
    given = spec.get("model", {})
    options: dict[str, Any] = {
        "act": about["activation"].lower(),
        "dropout": given.get("dropout", 0.0),
    }
    norm = about["normalization"]
    if norm == "LAYER":
        options |= {"norm": "layer_norm", "norm_kwargs": {"mode": "node"}}
    if norm == "L2":
        options |= {"norm": modules.UnitRows(), "act_first": True}
    if about["type"] in ("GAT", "GATV2"):
        v2 = about["type"] == "GATV2"
        options |= {"heads": about["heads"], "v2": v2, "residual": about["residual"]}
    if about["type"] == "PINSAGE":
        options["project"] = True
    sizes = (about["in_dim"], about["hidden_dim"], about["layers"], about["out_dim"])
    kind = modules.GCN if about["type"] == "GCN" else getattr(models, _CLASSES[about["type"]])
    made = kind(*sizes, **options)
    made.load_state_dict(tensors(parameters))
    made.eval()
    if not facts["standardized_features"]:
        return made
    if facts["feature_mean"] is None:
        raise GnndError(
            "the job standardised features, and its dataset, which has their means, is gone; "
            "job.state_dict() has the parameters"
        )
    return standardizing(made, facts["feature_mean"], facts["feature_deviation"])


def any_module(
    facts: Mapping[str, Any], spec: Mapping[str, Any], parameters: Mapping[str, Any]
) -> Any:
    """What `Job.to_torch` says, of the same."""
    if facts["rows"] is None:
        return module(facts, spec, parameters)
    torch_of("job.to_torch()")
    from gnnd import rows

    made = rows.made(facts, spec)
    made.load_state_dict(tensors(parameters))
    made.eval()
    about = facts["rows"]
    if not about["standardized"]:
        return made
    if about["mean"] is None:
        raise GnndError(
            "the job standardised rows, and its propagation, which has their means, is gone: "
            "propagate again (docs/pre-propagation.md); job.state_dict() has the parameters"
        )
    of_tokens = (about["mean"], about["deviation"])
    last = facts["model"]["type"] == "SGC"
    mean, deviation = (values[-1] if last else values for values in of_tokens)
    return standardizing(made, mean, deviation)


def _refuse_others(about: Mapping[str, Any], spec: Mapping[str, Any]) -> None:
    kind = about["type"]
    if kind not in _CLASSES:
        raise GnndError(
            "a TORCHSCRIPT model is a class of its author's (docs/plugins.md), which takes "
            "job.state_dict()"
            if kind == "TORCHSCRIPT"
            else f"torch_geometric has no module of a {kind}; job.to_torch() has one of plain "
            "PyTorch, over propagated rows (docs/pre-propagation.md)"
        )
    if about["residual"] and kind not in ("GAT", "GATV2"):
        raise GnndError(
            f"torch_geometric's {_CLASSES[kind]} has no residual connections; job.state_dict() has "
            "the parameters (docs/formats/checkpoint.md says what a layer computes)"
        )
    is_mean = _CLASSES[kind] == "GraphSAGE"
    if is_mean and spec.get("sampling", {}).get("algorithm") == "KHOP_WEIGHTED":
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
