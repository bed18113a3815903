"""Standardising as a part of a module. Needs nothing but torch."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn


class StandardizedTypes(nn.Module):  # type: ignore[misc]
    """The same of rows by types: a mapping of lists each."""

    def __init__(self, model: Any, mean: Any, deviation: Any) -> None:
        super().__init__()
        self.model = model
        self.of = nn.ModuleDict(
            {f"of_{key}": Standardized(nn.Identity(), mean[key], deviation[key]) for key in mean}
        )

    def forward(self, x: Any, *args: Any, **options: Any) -> Any:
        """What `model` makes of the rows once they are standardised."""
        rows = {key: self.of[f"of_{key}"](values) for key, values in x.items()}
        return self.model(rows, *args, **options)


class Standardized(nn.Module):  # type: ignore[misc]
    """`model` behind (x - mean) / deviation of every column, in double precision."""

    def __init__(self, model: Any, mean: Any, deviation: Any) -> None:
        super().__init__()
        self.model = model
        self.register_buffer("mean", torch.tensor(mean, dtype=torch.float64))
        self.register_buffer("deviation", torch.tensor(deviation, dtype=torch.float64))

    def forward(self, x: Tensor, *args: Any, **options: Any) -> Any:
        """What `model` makes of the rows once they are standardised."""
        rows = ((x.double() - self.mean) / self.deviation).float()
        return self.model(rows, *args, **options)
