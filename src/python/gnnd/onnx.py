"""Modules with gnnd's parameters as ONNX files, of any number of nodes and edges."""

from __future__ import annotations

import contextlib
import copy
import logging
import os
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from gnnd.errors import GnndError, missing
from gnnd.geometric import torch_of

#: Nodes, edges and pairs that a module is traced with; a file takes others.
_NODES, _EDGES, _PAIRS = 5, 7, 3


def write(module: Any, facts: Mapping[str, Any], path: str | os.PathLike[str]) -> Path:
    """What `Job.to_onnx` says, of `Job.to_torch`'s module and an export.json."""
    torch = torch_of("job.to_onnx()")
    for package in ("onnx", "onnxscript"):
        try:
            __import__(package)
        except ImportError:
            raise missing(package, "onnx", "job.to_onnx()") from None
    from gnnd import heads

    kind = facts["model"]["type"]
    is_of_links = isinstance(module, heads.LinkModel)
    encoder = module.encoder if is_of_links else module
    if facts["rows"] is None:
        from gnnd import modules

        has_own_loops = modules.KINDS[kind].has_own_loops
        named = _over_graphs(torch, encoder, has_own_loops=has_own_loops)
    else:
        named = _over_rows(torch, encoder)
    arguments, shapes = _traced_with(torch, facts)
    if is_of_links:
        named = heads.LinkModel(named, module.head).eval()
        arguments["edge_label_index"] = torch.arange(2 * _PAIRS).reshape(2, _PAIRS) % _NODES
        shapes["edge_label_index"] = {1: "pairs"}
    try:
        with _quiet():
            program = torch.onnx.export(
                named,
                tuple(arguments.values()),
                input_names=list(arguments),
                output_names=["scores" if is_of_links else "logits"],
                dynamic_shapes=(tuple(shapes.values()),) if is_of_links else tuple(shapes.values()),
                dynamo=True,
                verbose=False,
            )
    except (torch.onnx.OnnxExporterError, RuntimeError) as error:
        said = str(error.__cause__ or error).strip().splitlines() or [type(error).__name__]
        raise GnndError(
            f"PyTorch {torch.__version__} makes no ONNX of this {kind}: {said[0]}; "
            "job.predict() predicts, job.to_torch() is the module"
        ) from error
    program.model.metadata_props.update(_said(facts))
    target = Path(path)
    # Whole or absent, as every file of gnnd's.
    part = target.with_name(f"{target.name}.part")
    program.save(part, external_data=False)
    return part.rename(target)


def _traced_with(
    torch: Any, facts: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, dict[int, str]]]:
    """Arguments by name, and the names of those of their dimensions that may be any."""
    width = facts["model"]["in_dim"]
    rows = facts["rows"]
    if rows is None:
        edges = torch.arange(2 * _EDGES).reshape(2, _EDGES) % _NODES
        arguments = {"x": torch.zeros(_NODES, width), "edge_index": edges}
        return arguments, {"x": {0: "nodes"}, "edge_index": {1: "edges"}}
    is_last = facts["model"]["type"] == "SGC"
    shape = (_NODES, width) if is_last else (_NODES, len(rows["tokens"]), width)
    return {"rows": torch.zeros(shape)}, {"rows": {0: "nodes"}}


def _said(facts: Mapping[str, Any]) -> dict[str, str]:
    """What a file says of itself."""
    names = ("job", "checkpoint", "epoch", "parameters_sha256")
    said = {f"gnnd.{name}": str(facts[name]) for name in names}
    return {**said, "gnnd.dataset": facts["dataset"]["id"], "gnnd.model": facts["model"]["type"]}


def _over_graphs(torch: Any, module: Any, *, has_own_loops: bool) -> Any:
    """`module` of features [n, F] and edges [2, E], by these names alone.

    torch_geometric's GAT drops loops, adds them again, and asks whether an edge is left: a number
    that depends on values, by which no exported graph can branch. With `has_own_loops` a loop that
    is there goes to one more node instead, whose row is dropped in the end, and all nodes get
    theirs: the same sums, and sizes that depend on sizes alone.
    """
    if has_own_loops:
        module = copy.deepcopy(module)
        for part in module.modules():
            if hasattr(part, "add_self_loops"):
                part.add_self_loops = False

    class OverGraphs(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.module = module

        def forward(self, x: Any, edge_index: Any) -> Any:
            if not has_own_loops:
                return self.module(x, edge_index)
            nodes = x.size(0)
            is_loop = edge_index[0] == edge_index[1]
            edges = torch.where(is_loop, torch.full_like(edge_index, nodes), edge_index)
            loops = torch.arange(nodes + 1).expand(2, -1)
            rows = torch.cat([x, x.new_zeros(1, x.size(1))])
            return self.module(rows, torch.cat([edges, loops], 1))[:nodes]

    return OverGraphs().eval()


def _over_rows(torch: Any, module: Any) -> Any:
    """`module` of rows, by that name alone."""

    class OverRows(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.module = module

        def forward(self, rows: Any) -> Any:
            return self.module(rows)

    return OverRows().eval()


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Without what the exporter says of packages that it does without."""
    logs = [logging.getLogger(name) for name in ("torch.onnx", "onnxscript", "onnx_ir")]
    before = [log.level for log in logs]
    for log in logs:
        log.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            for kind in (DeprecationWarning, FutureWarning):
                warnings.simplefilter("ignore", kind)
            yield
    finally:
        for log, level in zip(logs, before, strict=True):
            log.setLevel(level)
