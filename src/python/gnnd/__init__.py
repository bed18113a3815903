"""gnnd for Python: graph networks are trained by a daemon and come back as PyTorch modules.

import gnnd

client = gnnd.connect()                      # or gnnd.local()
client.import_pyg(data, name="mine")
model = gnnd.GraphSAGE(hidden=256, layers=3)
job = client.submit(dataset="mine", model=model, fanouts=[15, 10, 5], epochs=20)
job.watch()
module = job.to_pyg()
"""

from gnnd import models, tasks
from gnnd.answers import Nearest
from gnnd.client import Client, version
from gnnd.dataset import Dataset
from gnnd.embedded import LocalClient, local
from gnnd.embeddings import Embeddings
from gnnd.errors import (
    AccessDenied,
    AlreadyExists,
    GnndError,
    ImportFailed,
    ImportRefused,
    InvalidRequest,
    JobCancelled,
    JobFailed,
    MissingPackage,
    NotFound,
    NotPossibleNow,
    Unavailable,
    VersionMismatch,
    Violation,
)
from gnnd.files import Predictions
from gnnd.identity import Identity, PathLike
from gnnd.job import Job
from gnnd.link_loading import link_loader
from gnnd.loading import Loader, loader
from gnnd.models import *  # noqa: F403
from gnnd.report import Report
from gnnd.results import Result
from gnnd.tasks import *  # noqa: F403

__all__ = [
    "AccessDenied",
    "AlreadyExists",
    "Client",
    "Dataset",
    "Embeddings",
    "GnndError",
    "ImportFailed",
    "ImportRefused",
    "InvalidRequest",
    "Job",
    "JobCancelled",
    "JobFailed",
    "Loader",
    "LocalClient",
    "MissingPackage",
    "Nearest",
    "NotFound",
    "NotPossibleNow",
    "Predictions",
    "Report",
    "Result",
    "Unavailable",
    "VersionMismatch",
    "Violation",
    "connect",
    "link_loader",
    "loader",
    "local",
]
__all__ += models.__all__
__all__ += tasks.__all__

__version__ = version()


def connect(
    address: str | None = None,
    *,
    token: str | None = None,
    tls: bool | None = None,
    ca: PathLike | None = None,
    cert: PathLike | None = None,
    key: PathLike | None = None,
) -> Client:
    """A client of a daemon that runs.

    `address` is `unix:PATH` or `HOST:PORT`; by default that of `GNND_ADDRESS`, else the socket
    `$XDG_RUNTIME_DIR/gnnd/gnnd.sock` or `/run/gnnd/gnnd.sock`, as `gnnctl` has it. Raises
    `Unavailable` where nobody listens, `AccessDenied`, and `VersionMismatch`.

    Over TCP, as docs/operating.md says of access: `token` (or `GNND_TOKEN`, `GNND_TOKEN_FILE`), and
    PEM files `ca`, `cert` and `key` (or `GNND_TLS_CA`, `GNND_TLS_CERT`, `GNND_TLS_KEY`); `tls=True`
    with none of them trusts what the host trusts.
    """
    return Client(address, Identity(token=token, tls=tls, ca=ca, cert=cert, key=key))
