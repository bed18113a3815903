"""Who a client is, and how it knows who answers (docs/operating.md, Access): token and TLS."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import grpc

from gnnd.errors import GnndError

PathLike = str | os.PathLike[str]


@dataclass(frozen=True)
class Identity:
    """What `gnnctl` takes as flags. Whatever is None is looked for in the environment."""

    #: A bearer token; else `GNND_TOKEN`, else what stands in the file of `GNND_TOKEN_FILE`.
    token: str | None = None
    #: Whether TCP is encrypted; by default where one of the files is named.
    tls: bool | None = None
    #: PEM file of who may sign the daemon's certificate (`GNND_TLS_CA`); else what the host trusts.
    ca: PathLike | None = None
    #: PEM file of the client's own certificate (`GNND_TLS_CERT`), beside `key`.
    cert: PathLike | None = None
    #: PEM file of its key (`GNND_TLS_KEY`).
    key: PathLike | None = None

    def metadata(self, environment: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
        """What goes with every call."""
        token, file = (
            self.token or environment.get("GNND_TOKEN"),
            environment.get("GNND_TOKEN_FILE"),
        )
        if not token and file:
            token = _read("GNND_TOKEN_FILE", file).decode(errors="replace")
        token = (token or "").strip()
        if re.search(r"[^\x21-\x7e]", token):
            raise GnndError("the token is not one: expected a line of letters")
        return (("authorization", f"Bearer {token}"),) if token else ()

    def credentials(
        self, address: str, environment: Mapping[str, str]
    ) -> grpc.ChannelCredentials | None:
        """Of the channel to `address`; None: without encryption."""
        if address.startswith("unix:"):
            return None
        files = {
            name: given or environment.get(f"GNND_TLS_{name.upper()}") or None
            for name, given in (("ca", self.ca), ("cert", self.cert), ("key", self.key))
        }
        if (files["cert"] is None) != (files["key"] is None):
            raise GnndError("cert and key: expected both or neither")
        if self.tls is False or not (self.tls or files["ca"] or files["cert"]):
            return None
        read = {name: None if path is None else _read(name, path) for name, path in files.items()}
        return grpc.ssl_channel_credentials(
            root_certificates=read["ca"],
            private_key=read["key"],
            certificate_chain=read["cert"],
        )


def _read(what: str, path: PathLike) -> bytes:
    try:
        return Path(path).expanduser().read_bytes()
    except OSError as error:
        raise GnndError(f"{what} {os.fspath(path)}: {error.strerror}") from None
