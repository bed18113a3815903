"""Job specs from plain Python values, by the descriptors of the protocol."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Any

from google.protobuf.descriptor import FieldDescriptor

from gnnd.errors import InvalidRequest, Violation
from gnnd.v1 import job_spec_pb2


def job_spec(values: Mapping[str, Any]) -> job_spec_pb2.JobSpec:
    """The message of a nested mapping with the keys of docs/job-spec.md.

    Enum values are texts, short as there (`"GCN"`) or in full (`"MODEL_TYPE_GCN"`); a value of
    None is a field that is not set. Raises `InvalidRequest` with every key that does not exist and
    every value that is no such type; what else is wrong the daemon says.
    """
    spec = job_spec_pb2.JobSpec()
    violations: list[Violation] = []
    _fill(spec, values, "spec", violations)
    if violations:
        raise InvalidRequest("the spec is wrong", reason="SPEC_INVALID", violations=violations)
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


def short_name(enum: Any, number: int) -> str:
    """`GCN` of `MODEL_TYPE_GCN`."""
    value = enum.values_by_number.get(number)
    return str(number) if value is None else str(value.name).removeprefix(_prefix_of(enum))


def _prefix_of(enum: Any) -> str:
    """`MODEL_TYPE_` of `ModelType`: what its value 0, not set, ends with."""
    return str(enum.values_by_number[0].name).removesuffix("UNSPECIFIED")


def _fill(message: Any, values: Mapping[str, Any], path: str, found: list[Violation]) -> None:
    fields = message.DESCRIPTOR.fields_by_name
    for key, value in values.items():
        if value is None:
            continue
        here = f"{path}.{key}"
        field = fields.get(key)
        if field is None:
            near = difflib.get_close_matches(key, fields, n=1)
            advice = f"; did you mean {near[0]}?" if near else f"; there are {', '.join(fields)}"
            found.append(Violation(here, f"there is no such field{advice}"))
        elif field.message_type is not None:
            if isinstance(value, Mapping):
                getattr(message, key).SetInParent()
                _fill(getattr(message, key), value, here, found)
            else:
                found.append(Violation(here, f"{value!r}: expected a mapping of its fields"))
        elif field.is_repeated:
            if isinstance(value, str) or not isinstance(value, Iterable):
                found.append(Violation(here, f"{value!r}: expected a list"))
                continue
            items = [_scalar(field, v, f"{here}[{i}]", found) for i, v in enumerate(value)]
            getattr(message, key).extend(item for item in items if item is not None)
        else:
            number = _scalar(field, value, here, found)
            if number is not None:
                setattr(message, key, number)


def _scalar(field: Any, value: Any, path: str, found: list[Violation]) -> Any:
    """What the message takes; None where that was a violation."""
    if field.enum_type is not None:
        names = {short_name(field.enum_type, n): n for n in field.enum_type.values_by_number if n}
        word = str(value).upper().removeprefix(_prefix_of(field.enum_type))
        if word in names:
            return names[word]
        found.append(Violation(path, f"{value!r}: expected one of {', '.join(names)}"))
        return None
    kind = field.cpp_type
    expected: str
    answer: Any
    if kind == FieldDescriptor.CPPTYPE_BOOL:
        expected, answer = "true or false", value if isinstance(value, bool) else None
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
        fits = whole is not None and whole == whole // 1 and low <= whole <= high
        expected, answer = f"an integer from {low} to {high}", int(value) if fits else None
    if answer is None:
        found.append(Violation(path, f"{value!r}: expected {expected}"))
    return answer


def _number(value: Any) -> Any:
    """The value where it is a number, numpy's included, and no truth value."""
    is_number = hasattr(value, "__index__") or hasattr(value, "__float__")
    if not is_number or isinstance(value, (bool, str)) or type(value).__name__ == "bool_":
        return None
    return int(value) if hasattr(value, "__index__") else float(value)
