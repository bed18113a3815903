"""gnnd for Python: graph networks are trained by a daemon and come back as PyTorch modules.

import gnnd

client = gnnd.connect()                      # or gnnd.local()
client.import_pyg(data, name="mine")
model = gnnd.GraphSAGE(hidden=256, layers=3)
job = client.submit(dataset="mine", model=model, fanouts=[15, 10, 5], epochs=20)
job.watch()
module = job.to_pyg()
"""

from gnnd.client import Client, version
from gnnd.dataset import Dataset
from gnnd.embedded import LocalClient, local
from gnnd.errors import (
    AlreadyExists,
    GnndError,
    ImportFailed,
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
from gnnd.job import Job
from gnnd.models import GAT, GCN, HOGA, SGC, SIGN, GATv2, GraphSAGE, Model, PinSAGE, TorchScript

__all__ = [
    "GAT",
    "GCN",
    "HOGA",
    "SGC",
    "SIGN",
    "AlreadyExists",
    "Client",
    "Dataset",
    "GATv2",
    "GnndError",
    "GraphSAGE",
    "ImportFailed",
    "InvalidRequest",
    "Job",
    "JobCancelled",
    "JobFailed",
    "LocalClient",
    "MissingPackage",
    "Model",
    "NotFound",
    "NotPossibleNow",
    "PinSAGE",
    "Predictions",
    "TorchScript",
    "Unavailable",
    "VersionMismatch",
    "Violation",
    "connect",
    "local",
]

__version__ = version()


def connect(address: str | None = None) -> Client:
    """A client of a daemon that runs.

    `address` is `unix:PATH` or `HOST:PORT`; by default that of `GNND_ADDRESS`, else the socket
    `$XDG_RUNTIME_DIR/gnnd/gnnd.sock` or `/run/gnnd/gnnd.sock`, as `gnnctl` has it. Raises
    `Unavailable` where nobody listens, and `VersionMismatch`.
    """
    return Client(address)
