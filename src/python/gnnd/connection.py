"""The wire: where the daemon is, one call, and what is done again when it breaks."""

from __future__ import annotations

import os
import shlex
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import grpc

from gnnd import errors
from gnnd.identity import Identity
from gnnd.v1 import (
    checkpoint_service_pb2_grpc,
    dataset_service_pb2_grpc,
    host_service_pb2_grpc,
    job_service_pb2_grpc,
)

#: Seconds that one call may take, and for which a daemon that says "not yet" is asked again.
CALL_SECONDS = 30.0


def serve_command(address: str) -> str:
    """What starts a daemon that answers at `address`, as `gnnctl` says it (src/base/advice.ts)."""
    host, _, port = address.rpartition(":")
    if address.startswith("unix:"):
        return f"npx gnnd serve --listen {shlex.quote(address)}"
    if host in ("localhost", "[::1]") or host.startswith("127."):
        return f"npx gnnd serve --listen {address} --insecure-loopback"
    return f"npx gnnd serve --listen 0.0.0.0:{port} --tls-cert FILE --tls-key FILE, on {host}"


def address_of(given: str | None, environment: Mapping[str, str] = os.environ) -> str:
    """The gRPC target, found as `gnnctl` finds it: as given, `GNND_ADDRESS`, the default socket."""
    named = given or environment.get("GNND_ADDRESS", "")
    if named == "":
        return f"unix:{environment.get('XDG_RUNTIME_DIR') or '/run'}/gnnd/gnnd.sock"
    if named.startswith(("/", "./")):
        return f"unix:{named}"
    for scheme in ("tcp://", "http://"):
        named = named.removeprefix(scheme)
    return named.replace("unix:///", "unix:/", 1)


def request_id() -> str:
    """Makes a changing call safe to send again: it has one effect."""
    return str(uuid.uuid4())


class Connection:
    """A channel to one daemon and the stubs on it."""

    def __init__(
        self,
        address: str,
        identity: Identity | None = None,
        environment: Mapping[str, str] = os.environ,
    ) -> None:
        self.address = address
        who = identity or Identity()
        #: What goes with every call.
        self.metadata = who.metadata(environment)
        credentials = who.credentials(address, environment)
        options = [("grpc.enable_http_proxy", 0), ("grpc.max_receive_message_length", 8 << 20)]
        self._channel = (
            grpc.insecure_channel(address, options=options)
            if credentials is None
            else grpc.secure_channel(address, credentials, options=options)
        )
        self.jobs: Any = job_service_pb2_grpc.JobServiceStub(self._channel)
        self.datasets: Any = dataset_service_pb2_grpc.DatasetServiceStub(self._channel)
        self.checkpoints: Any = checkpoint_service_pb2_grpc.CheckpointServiceStub(self._channel)
        self.hosts: Any = host_service_pb2_grpc.HostServiceStub(self._channel)
        self._was_reached = False

    @property
    def is_local_socket(self) -> bool:
        """Whether client and daemon are on one host for certain."""
        return self.address.startswith("unix:")

    def close(self) -> None:
        """Ends the connection; calls in progress fail."""
        self._channel.close()

    def call(self, method: Callable[..., Any], request: Any, seconds: float = CALL_SECONDS) -> Any:
        """One call; `request` has a request id where it changes something, so it may be repeated.

        A daemon that is there and says when to ask again is asked again for `CALL_SECONDS`, one
        that was there before likewise. Raises `GnndError`.
        """
        deadline = time.monotonic() + CALL_SECONDS
        while True:
            try:
                answer = method(request, timeout=seconds, metadata=self.metadata)
                self._was_reached = True
                return answer
            except grpc.RpcError as error:
                failure = errors.failure_of(error)
                wait = self.retry_delay(failure)
                if wait is None or time.monotonic() + wait > deadline:
                    raise self._explained(failure) from None
                time.sleep(wait)

    def stream(self, method: Callable[..., Any], request: Any) -> Iterator[Any]:
        """What a streaming call answers, once. The call is cancelled when nobody reads on."""
        call = method(request, metadata=self.metadata)
        try:
            yield from call
        except grpc.RpcError as error:
            raise self._explained(errors.failure_of(error)) from None
        finally:
            call.cancel()

    def retry_delay(self, failure: errors.Failure) -> float | None:
        """Seconds until the same call is worth another try; None: it is not."""
        if failure.error.code != "UNAVAILABLE":
            return None
        if failure.retry_after is not None:
            return failure.retry_after
        return 0.25 if self._was_reached and failure.error.reason == "" else None

    def _explained(self, failure: errors.Failure) -> errors.GnndError:
        """Adds what to do where nobody answered at all."""
        error = failure.error
        if error.code != "UNAVAILABLE" or error.reason != "":
            return error
        tls = "  over TCP gnnd asks for TLS: gnnd.connect(ADDRESS, ca=FILE), or tls=True\n"
        message = (
            f"cannot reach gnnd at {self.address}: {error.message}\n"
            f"{'' if self.is_local_socket else tls}"
            f"  start one:    {serve_command(self.address)}\n"
            "  or name one:  gnnd.connect(ADDRESS), or GNND_ADDRESS\n"
            "  or have one for this process alone:  gnnd.local()"
        )
        return errors.Unavailable(message, code=error.code)
