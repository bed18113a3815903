"""What can go wrong, as exceptions. All of them are `GnndError`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory


@dataclass(frozen=True)
class Violation:
    """One thing that is wrong."""

    #: Path of a field, such as `spec.model.dropout`, or a file's name.
    field: str
    #: What was found and what was expected.
    description: str

    def __str__(self) -> str:
        return f"{self.field}: {self.description}"


class GnndError(Exception):
    """Anything that gnnd refuses or fails at.

    `code` is gRPC's (`"INVALID_ARGUMENT"`; empty where no call failed), `reason` the stable word
    for programs (`"SPEC_INVALID"`), `violations` everything that is wrong with its path, and
    `metadata` what else the daemon says.
    """

    def __init__(
        self,
        message: str,
        *,
        code: str = "",
        reason: str = "",
        violations: Sequence[Violation] = (),
        metadata: Mapping[str, str] | None = None,
    ) -> None:
        self.message = message
        self.code = code
        self.reason = reason
        self.violations = tuple(violations)
        self.metadata = dict(metadata or {})
        told = [text for text in map(str, self.violations) if text != message]
        super().__init__("\n  ".join([message, *told]))


class InvalidRequest(GnndError, ValueError):
    """A spec, a request or an argument is wrong; `violations` has every wrong field."""


class NotFound(GnndError):
    """There is no such job, dataset, device or operation."""


class AlreadyExists(GnndError):
    """The name is taken."""


class NotPossibleNow(GnndError):
    """The state of a job or dataset does not allow it."""


class AccessDenied(GnndError):
    """The token is missing or unknown, or its role may not do this."""


class Unavailable(GnndError):
    """The daemon cannot be reached, starts, stops, or has no room."""


class VersionMismatch(GnndError):
    """This package and the daemon are of versions that do not go together."""


class ImportFailed(GnndError):
    """An import failed; `violations` has every problem with its file (and line, in tables)."""


class ImportRefused(InvalidRequest, ImportFailed):
    """Arrays, frames or a graph cannot be imported: this package saw it before the daemon."""

    def __str__(self) -> str:
        if len(self.violations) != 1:
            return super().__str__()
        return f"{self.message}: {self.violations[0]}"


class JobFailed(GnndError):
    """A job ended FAILED; `reason` and the message say why."""


class JobCancelled(GnndError):
    """A job was cancelled before its end."""


class MissingPackage(GnndError, ImportError):
    """An optional package is not installed; the message has the command that gets it."""


_kinds: dict[str, type[GnndError]] = {
    "INVALID_ARGUMENT": InvalidRequest,
    "NOT_FOUND": NotFound,
    "ALREADY_EXISTS": AlreadyExists,
    "FAILED_PRECONDITION": NotPossibleNow,
    "UNAUTHENTICATED": AccessDenied,
    "PERMISSION_DENIED": AccessDenied,
    "UNAVAILABLE": Unavailable,
    "RESOURCE_EXHAUSTED": Unavailable,
}


def wrong(call: str, *violations: Violation) -> InvalidRequest:
    """The error of a call, as its caller wrote it, that this package refuses before the daemon."""
    is_import = call.startswith(("import_", "an import"))
    kind = ImportRefused if is_import else InvalidRequest
    page = "docs/datasets.md" if is_import else "docs/python.md"
    return kind(f"{call} cannot take this ({page})", violations=violations)


def missing(package: str, extra: str, what: str) -> MissingPackage:
    """The error of a function that needs `package`, which the extra brings where there is one."""
    brought = f", or 'gnnd[{extra}]'" if extra else ""
    return MissingPackage(f"{what} needs {package}: pip install {package}{brought}")


@dataclass(frozen=True)
class Failure:
    """A failed call as the daemon describes it."""

    error: GnndError
    #: Seconds after which the daemon wants to be asked again; None: it does not say.
    retry_after: float | None


def failure_of(error: grpc.RpcError) -> Failure:
    """Reads a failed call, with the details in its trailer where it has any."""
    code = error.code().name
    message = error.details() or code
    reason, violations, metadata, retry_after = "", [], {}, None
    for name, detail in _details_of(error):
        if name == "ErrorInfo":
            reason, metadata = detail.reason, dict(detail.metadata)
        elif name == "BadRequest":
            violations += [Violation(v.field, v.description) for v in detail.field_violations]
        elif name == "PreconditionFailure":
            violations += [Violation(v.subject, v.description) for v in detail.violations]
        elif name == "RetryInfo":
            retry_after = detail.retry_delay.seconds + detail.retry_delay.nanos / 1e9
    kind = _kinds.get(code, GnndError)
    found = kind(message, code=code, reason=reason, violations=violations, metadata=metadata)
    return Failure(found, retry_after)


def _details_of(error: grpc.RpcError) -> list[tuple[str, Any]]:
    """`google.rpc` messages of the trailer, with their short names."""
    trailers = [
        item.value
        for item in error.trailing_metadata() or ()
        if item.key == "grpc-status-details-bin"
    ]
    if not trailers:
        return []
    messages = _detail_messages()
    found = []
    for packed in messages["Status"].FromString(trailers[0]).details:
        name = packed.type_url.rpartition(".")[2]
        if name in messages:
            found.append((name, messages[name].FromString(packed.value)))
    return found


@cache
def _detail_messages() -> dict[str, Any]:
    """Classes of `google.rpc`, in a pool of their own: others may have other versions loaded."""
    data = resources.files("gnnd.v1").joinpath("error_details.binpb").read_bytes()
    pool = descriptor_pool.DescriptorPool()
    files = descriptor_pb2.FileDescriptorSet.FromString(data).file
    for file in files:
        pool.Add(file)
    return {
        message.name: message_factory.GetMessageClass(
            pool.FindMessageTypeByName(f"{file.package}.{message.name}")
        )
        for file in files
        for message in file.message_type
    }
