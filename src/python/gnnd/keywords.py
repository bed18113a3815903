"""Values that are made of keywords alone: networks, and what is learnt."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

from gnnd.errors import InvalidRequest, Violation
from gnnd.words import advice, shown

if TYPE_CHECKING:
    from typing_extensions import Self


class Keywords:
    """What dataclasses of keywords have in common."""

    def __new__(cls, *given: Any, **named: Any) -> Self:
        """Says all that is wrong with what `cls` is given, where `__init__` would say the first."""
        names = [field.name for field in fields(cls)]  # type: ignore[arg-type]
        found = [
            Violation(f"[{at}]", f"{shown(value)}: expected keywords, such as {names[0]}=…")
            for at, value in enumerate(given)
        ]
        found += [
            Violation(name, f"there is no such keyword{advice(name, names)}")
            for name in named
            if name not in names
        ]
        if found:
            takes = f"gnnd.{cls.__name__} takes {', '.join(names)}"
            raise InvalidRequest(takes, violations=found)
        return super().__new__(cls)
