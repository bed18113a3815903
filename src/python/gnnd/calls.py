"""Calls that a person types: what is wrong with one is always said in gnnd's words."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from gnnd.errors import GnndError, InvalidRequest, Violation, wrong
from gnnd.words import advice, shown

_P = ParamSpec("_P")
_R = TypeVar("_R")
#: What Python raises of an object that is not what it is taken for.
_BARE = (KeyError, TypeError, AttributeError, ValueError, IndexError, OverflowError)


def public(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Lets nothing but `GnndError` out of a call that was given something that it does not know.

    Each call looks at its arguments by name before; this is what is left: keywords that it has
    not, and objects that answer in another way than their library's do.
    """
    signature = inspect.signature(function)
    call = f"{function.__name__}()"

    @functools.wraps(function)
    def called(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        try:
            signature.bind(*args, **kwargs)
        except TypeError as error:
            raise _misfit(call, signature, kwargs, error) from None
        try:
            return function(*args, **kwargs)
        except GnndError:
            raise
        except _BARE as error:
            given = args[1] if len(args) > 1 else next(iter(kwargs.values()), None)
            said = " ".join(str(error).split())
            text = f"{shown(given)}: {type(error).__name__} while it was read: {said}"
            raise wrong(call, Violation(_first_name(signature), text)) from error

    return called


def _instead(name: str, known: list[str]) -> str:
    return advice(name, known) or f"; there are {', '.join(known)}"


def _first_name(signature: inspect.Signature) -> str:
    return next((name for name in signature.parameters if name != "self"), "it")


def _misfit(
    call: str, signature: inspect.Signature, given: dict[str, Any], error: TypeError
) -> InvalidRequest:
    """The error of arguments that a function does not have, or lacks."""
    parameters = signature.parameters
    known = [name for name in parameters if name != "self"]
    if any(each.kind is each.VAR_KEYWORD for each in parameters.values()):
        known_to_all: list[str] = []
    else:
        known_to_all = [name for name in given if name not in known]
    wrongs = [
        Violation(name, f"there is no such argument{_instead(name, known)}")
        for name in known_to_all
    ]
    return wrong(
        call, *(wrongs or [Violation("arguments", f"{error}: there are {', '.join(known)}")])
    )
