"""Numbers of neighbours of a job, for all relations or for each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gnnd.errors import Violation
from gnnd.words import shown

#: Stands for relations that a mapping leaves out.
OTHERS = "*"


def fanouts_of(given: Any, wrongs: list[Violation]) -> dict[str, Any]:
    """The parts of a spec for the argument `fanouts` of `Client.submit`."""
    if not isinstance(given, Mapping):
        return {"sampling": {"fanouts": given}}
    lists: dict[str, list[int]] = {}
    for relation, fanouts in given.items():
        name = relation if isinstance(relation, str) else "__".join(map(str, relation))
        try:
            lists[name] = [int(fanout) for fanout in fanouts]
        except (TypeError, ValueError):
            wrongs.append(Violation("fanouts", f"{shown(fanouts)}: expected a list of numbers"))
    lengths = {len(fanouts) for fanouts in lists.values()}
    if len(lengths) != 1:
        text = "expected lists of one length, a number for each hop"
        wrongs.append(Violation("fanouts", f"{shown(given)}: {text}"))
        return {}
    others = lists.pop(OTHERS, None) or [_largest(hop) for hop in zip(*lists.values(), strict=True)]
    texts = [f"{name}={'/'.join(map(str, fanouts))}" for name, fanouts in lists.items()]
    return {"sampling": {"fanouts": others}, "relations": {"fanouts": texts}}


def _largest(hop: tuple[int, ...]) -> int:
    """Of a hop's numbers; -1 takes all, and 0 is no fanout of its own."""
    return -1 if min(hop) < 0 else max(*hop, 1)
