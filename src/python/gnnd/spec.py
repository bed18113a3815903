"""Job specs from plain Python values, by the descriptors of the protocol."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from google.protobuf.descriptor import FieldDescriptor

from gnnd.errors import InvalidRequest, Violation
from gnnd.v1 import job_spec_pb2
from gnnd.words import advice, lacking, meaning, one_of, shown

#: Fields of the spec by arguments of models and of `Client.submit`, where those differ.
NAMES = {"hidden": "hidden_dim", "patience": "patience_epochs"}


def job_spec(values: Mapping[str, Any], before: Sequence[Violation] = ()) -> job_spec_pb2.JobSpec:
    """The message of a nested mapping with the keys of docs/job-spec.md.

    Enum values are texts, short as there (`"GCN"`) or in full (`"MODEL_TYPE_GCN"`); a value of
    None is a field that is not set. Raises `InvalidRequest` with every key that does not exist and
    every value that is no such type, after what was found `before`; what else is wrong the daemon
    says.
    """
    spec = job_spec_pb2.JobSpec()
    violations = list(before)
    if isinstance(values, Mapping):
        _fill(spec, values, "spec", violations)
    else:
        violations.append(Violation("spec", f"{shown(values)}: expected a mapping of its fields"))
    if violations:
        text = "the spec is wrong (docs/job-spec.md has all fields)"
        raise InvalidRequest(text, reason="SPEC_INVALID", violations=violations)
    return spec


def merged(*parts: Mapping[str, Any]) -> dict[str, Any]:
    """Nested mappings in one; of two values for one key the later one that is not None holds."""
    result: dict[str, Any] = {}
    for part in parts:
        for key, value in part.items():
            before = result.get(key)
            if isinstance(value, Mapping):
                result[key] = merged(before if isinstance(before, Mapping) else {}, value)
            elif value is not None:
                result[key] = value
    return result


def plain(message: Any) -> dict[str, Any]:
    """The fields of a message that are set, as `job_spec` takes them: with short enum names."""
    result: dict[str, Any] = {}
    for field, value in message.ListFields():
        is_list = field.is_repeated
        if field.message_type is not None:
            result[field.name] = [plain(v) for v in value] if is_list else plain(value)
        elif field.enum_type is not None:
            result[field.name] = (
                [short_name(field.enum_type, v) for v in value]
                if is_list
                else short_name(field.enum_type, value)
            )
        else:
            result[field.name] = list(value) if is_list else value
    return result


def choices_of(job: Any) -> dict[str, str]:
    """How fields of its spec came about that were left open, by their names."""
    told = {field.name: text for field, text in job.ListFields()}
    return {k.removesuffix("_choice"): v for k, v in told.items() if k.endswith("_choice")}


def short_name(enum: Any, number: int) -> str:
    """`GCN` of `MODEL_TYPE_GCN`."""
    value = enum.values_by_number.get(number)
    return str(number) if value is None else str(value.name).removeprefix(_prefix_of(enum))


def _prefix_of(enum: Any) -> str:
    """`MODEL_TYPE_` of `ModelType`: what its value 0, not set, ends with."""
    return str(enum.values_by_number[0].name).removesuffix("UNSPECIFIED")


def path_of(name: Any) -> str | None:
    """Where the spec has a field of that name, or of what it is called here."""
    return _paths().get(_called(name))


def wrong_sections(sections: Mapping[str, Any], arguments: Sequence[str]) -> list[Violation]:
    """What is wrong with what `Client.submit` was given beside its `arguments`."""
    fields = job_spec_pb2.JobSpec.DESCRIPTOR.fields_by_name
    found = []
    for key, value in sections.items():
        if key not in fields:
            text = advice(key, arguments) if meaning(key) in arguments else ""
            text = text or lacking(key) or _elsewhere(key)
            text = text or advice(key, [*arguments, *fields]) or _there(arguments, fields)
            found.append(Violation(key, f"there is no such argument{text}"))
        elif fields[key].message_type and value is not None and not isinstance(value, Mapping):
            found.append(Violation(key, f"{shown(value)}: expected a mapping of its fields"))
    return found


def _there(arguments: Iterable[str], fields: Iterable[str]) -> str:
    others = {*arguments, "dataset", "model", "kind", "inference", "load"}
    sections = [name for name in fields if name not in others]
    return f"; there are {', '.join(arguments)}, and sections: {', '.join(sections)}"


def _elsewhere(key: str) -> str:
    """Where a field of the spec goes that is no argument of `Client.submit`."""
    path = path_of(key)
    if path is None:
        return ""
    section, *rest = path.removeprefix("spec.").split(".")
    if section == "model":
        return f"; it is the model's, such as gnnd.GAT({meaning(key) or key}=…)"
    nested = "…"
    for name in reversed(rest):
        nested = f"{{'{name}': {nested}}}"
    return f"; it goes in as {section}={nested}"


def _called(name: Any) -> str:
    known = meaning(name) or str(name)
    return NAMES.get(known, known)


@cache
def _paths() -> dict[str, str]:
    """Paths by the last name of each; of several that of the training, else the first."""
    every = list(_walk(job_spec_pb2.JobSpec.DESCRIPTOR, "spec"))
    every.sort(key=lambda path: not path.startswith("spec.training."))
    found: dict[str, str] = {}
    for path in every:
        found.setdefault(path.rpartition(".")[2], path)
    return found


def _walk(message: Any, path: str) -> Iterator[str]:
    for field in message.fields:
        here = f"{path}.{field.name}"
        yield here
        if field.message_type is not None:
            yield from _walk(field.message_type, here)


def _unknown(key: Any, fields: Iterable[str]) -> str:
    path = path_of(key)
    if _called(key) in fields:
        near = f"; it is called {_called(key)} here"
    else:
        near = advice(key, fields) if path is None else f"; did you mean {path}?"
        near = lacking(key) or near
    return f"there is no such field{near or '; there are ' + ', '.join(fields)}"


def _fill(message: Any, values: Mapping[str, Any], path: str, found: list[Violation]) -> None:
    fields = message.DESCRIPTOR.fields_by_name
    for key, value in values.items():
        if value is None:
            continue
        here = f"{path}.{key}"
        field = fields.get(key) if isinstance(key, str) else None
        if field is None:
            found.append(Violation(here, _unknown(key, fields)))
        elif field.message_type is not None:
            if isinstance(value, Mapping):
                getattr(message, key).SetInParent()
                _fill(getattr(message, key), value, here, found)
            else:
                text = f"{shown(value)}: expected a mapping of its fields"
                found.append(Violation(here, text))
        elif field.is_repeated:
            # What has no order is no list.
            if isinstance(value, (str, set, frozenset, Mapping)) or not _is_list(value):
                found.append(Violation(here, f"{shown(value)}: expected a list"))
                continue
            items = [_scalar(field, v, f"{here}[{i}]", found) for i, v in enumerate(value)]
            getattr(message, key).extend(item for item in items if item is not None)
        else:
            number = _scalar(field, value, here, found)
            if number is not None:
                setattr(message, key, number)


def _is_list(value: Any) -> bool:
    """An array without dimensions has `__iter__` and cannot be iterated."""
    return isinstance(value, Iterable) and getattr(value, "ndim", 1) > 0


def _scalar(field: Any, value: Any, path: str, found: list[Violation]) -> Any:
    """What the message takes; None where that was a violation."""
    if field.enum_type is not None:
        names = {short_name(field.enum_type, n): n for n in field.enum_type.values_by_number if n}
        word = str(value).upper().removeprefix(_prefix_of(field.enum_type))
        if word in names:
            return names[word]
        found.append(Violation(path, one_of(value, names)))
        return None
    kind = field.cpp_type
    expected: str
    answer: Any
    if kind == FieldDescriptor.CPPTYPE_BOOL:
        # Of numpy, too.
        is_bool = isinstance(value, bool) or type(value).__name__ in ("bool", "bool_")
        expected, answer = "True or False", bool(value) if is_bool else None
    elif kind == FieldDescriptor.CPPTYPE_STRING:
        expected, answer = "a text", str(value) if hasattr(value, "__fspath__") else value
        answer = answer if isinstance(answer, str) else None
    elif kind == FieldDescriptor.CPPTYPE_DOUBLE:
        expected, answer = "a number", _number(value)
    else:
        whole = _number(value)
        bits = 32 if kind == FieldDescriptor.CPPTYPE_INT32 else 64
        low, high = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
        if kind == FieldDescriptor.CPPTYPE_UINT64:
            low, high = 0, 2**64 - 1
        is_whole = whole is not None and whole == whole // 1
        fits = is_whole and low <= whole <= high
        expected = f"an integer from {low} to {high}" if is_whole else "an integer"
        answer = int(whole) if fits else None
    if answer is None:
        found.append(Violation(path, f"{shown(value)}: expected {expected}"))
    return answer


def _number(value: Any) -> Any:
    """The value where it is one number, numpy's included, and no truth value."""
    if isinstance(value, (bool, str)) or type(value).__name__ in ("bool", "bool_"):
        return None
    for kind, method in ((operator.index, "__index__"), (float, "__float__")):
        try:
            if hasattr(value, method):
                return kind(value)
        except (TypeError, ValueError, RuntimeError):
            continue  # Of an array: of fractions, or of several.
    return None
