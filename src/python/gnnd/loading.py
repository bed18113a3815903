"""Batches of gnnd's Samplers for a training loop of one's own (docs/loader.md)."""

from __future__ import annotations

import atexit
import inspect
import os
import shutil
import tempfile
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

from gnnd import forms, supply, typed_supply, watch
from gnnd.calls import public
from gnnd.client import Client
from gnnd.errors import GnndError, Violation, wrong
from gnnd.items import Items, LinkItems, NodeItems
from gnnd.job import Job
from gnnd.reader import Gone, Reader
from gnnd.typed_forms import TypedShape
from gnnd.words import advice, one_of, shown

#: Epochs that one job lends; a batch key has room for more.
_EPOCHS = 100_000
_LOOK_MS = 500
#: For a lender to be there again, or to come.
_PATIENCE_SECONDS = 60.0
#: Of a loader's options, those that are parts of its job's spec.
_OF_SPEC = ("model", "sampling", "relations")
_ALGORITHMS = ("KHOP_UNIFORM", "KHOP_WEIGHTED", "RANDOM_WALK", "LABOR", "KHOP_PLUGIN")
#: Arguments of NeighborLoader by the one value that a loader has; ...: any.
_NEUTRAL: Mapping[str, Any] = {
    **{"directed": True, "subgraph_type": "directional", "disjoint": False},
    **{"time_attr": None, "input_time": None, "neighbor_sampler": None},
    **{"transform_sampler_output": None, "is_sorted": ..., "filter_per_worker": ...},
    **{"worker_init_fn": ..., "multiprocessing_context": ..., "timeout": ...},
}


@public
def loader(
    data: Any,
    num_neighbors: Sequence[int] | Mapping[Any, Sequence[int]] = (10, 10),
    *,
    batch_size: int = 1,
    input_nodes: Any = None,
    shuffle: bool = False,
    replace: bool = False,
    drop_last: bool = False,
    weight_attr: str | None = None,
    edge_ids: bool | None = None,
    transform: Callable[[Any], Any] | None = None,
    num_workers: int | None = None,
    pin_memory: bool = False,
    persistent_workers: bool = True,
    prefetch_factor: int = 1,
    form: str = "pyg",
    seed: int = 0,
    rank: int = 0,
    world_size: int = 1,
    job: str | None = None,
    client: Client | None = None,
    sampling: Mapping[str, Any] | None = None,
    **others: Any,
) -> Loader:
    """An iterable over sampled batches, as `torch_geometric.loader.NeighborLoader` is.

    Args:
        data: A `torch_geometric.data.Data`, or the name of a dataset of `client`; or a `HeteroData`
            whose batches are such, too.
        num_neighbors: Neighbours drawn for each node and hop, from the seeds outward; -1 takes all.
            Of a `HeteroData` along each relation, or a mapping of relations ("*": all others).
        batch_size: Seeds a batch.
        input_nodes: The seeds: a mask, ids, or None for all nodes (of a dataset: its training
            nodes). Of a `HeteroData` (type, mask or ids), or a type, for all of its nodes.
        shuffle: Whether each epoch has the seeds in an order of its own.
        replace: Whether a neighbour may be drawn twice.
        drop_last: Whether the last batch of an epoch is left out where it is short.
        weight_attr: The attribute of edges in whose proportion neighbours are drawn.
        edge_ids: Whether batches have `e_id`, columns of the given `edge_index`, and what `data`
            has of edges; by default where it has any.
        transform: Called with each batch; its answer is what the loop gets.
        num_workers: Samplers, which are processes of the daemon; by default one less than it has
            devices.
        pin_memory: Whether tensors are in page-locked memory, from which a GPU copies faster.
        persistent_workers: Accepted as NeighborLoader's; Samplers always stay.
        prefetch_factor: Batches that are copied ahead of the loop, 0 or more.
        form: "pyg": a `Data`; "layers": one with a matrix for each layer (`adjs`) in place of
            `edge_index`; "blocks": (input nodes, output nodes, DGL blocks); "tensors": a mapping of
            tensors.
        seed: Key of all randomness: the same seed gives the same batches on any number of Samplers.
        rank: This reader's number, where several share the batches.
        world_size: How many readers share the batches: batch b is of rank b modulo `world_size`.
        job: Id of the job that another rank's loader made (`Loader.job_id`); the first rank has
            none.
        client: Of the daemon that samples; by default one of this process alone.
        sampling: Other fields of a spec's `sampling`, such as `{"algorithm": "LABOR"}`.
        others: Further arguments of NeighborLoader, with the values that change nothing.
    """
    del persistent_workers
    drawn = _algorithm_of(sampling, weight_attr)
    found = _wrong_others(others)
    found += [] if form in forms.FORMS else [Violation("form", one_of(form, forms.FORMS))]
    found += _wrong_numbers(batch_size=batch_size, world_size=world_size, ahead=prefetch_factor)
    if not found and not 0 <= rank < world_size:
        found.append(Violation("rank", f"{shown(rank)}: expected 0 to {world_size - 1}"))
    found += _wrong_sampling(drawn, weight_attr, form, edge_ids)
    if found:
        raise wrong("gnnd.loader()", *found)
    make: type[forms.Shape] = forms.Shape
    source: supply.Source | typed_supply.TypedSource
    if typed_supply.has_types(data):
        typed_supply.refuse(form=form, drawn=drawn, weight_attr=weight_attr)
        source = typed_supply.TypedSource(data, client, input_nodes)
        parts, make, input_nodes = source.spec_of(num_neighbors), TypedShape, source.input_nodes
    else:
        source = supply.source_of(data, client, weight_attr)
        parts = {"sampling": {} if drawn == "RANDOM_WALK" else _fanouts_of(num_neighbors)}
    options = {
        **parts,
        "sampling": {
            "algorithm": drawn,
            "expansion": "ALL" if form == "blocks" else "NEW",
            **parts["sampling"],
            **({"replace": True} if replace else {}),
            **(sampling or {}),
        },
        **{"batch_size": batch_size, "shuffle": bool(shuffle), "seed": int(seed)},
        "samplers": num_workers or source.default_samplers,
    }
    numbers = _has_numbers(source, drawn, form) if edge_ids is None else edge_ids
    links = input_nodes if isinstance(input_nodes, LinkItems) else None
    items = links or NodeItems(source.seeds_of(input_nodes), source.num_train)
    shape = make(form, transform, pin_memory=pin_memory, numbers=numbers, links=links)
    return Loader(
        source=source,
        items=items,
        options=options,
        shape=shape,
        readers=(rank, world_size, job),
        ahead=(prefetch_factor, drop_last),
    )


def _wrong_numbers(*, batch_size: Any, world_size: Any, ahead: Any) -> list[Violation]:
    asked = (
        ("batch_size", batch_size, 1),
        ("world_size", world_size, 1),
        ("prefetch_factor", ahead, 0),
    )
    return [
        Violation(name, f"{shown(number)}: expected an integer from {least} on")
        for name, number, least in asked
        if not isinstance(number, int) or number < least
    ]


def _fanouts_of(num_neighbors: Any) -> dict[str, list[int]]:
    if isinstance(num_neighbors, Mapping):
        text = f"{shown(num_neighbors)}: of one relation; expected a list of numbers"
        raise wrong("gnnd.loader()", Violation("num_neighbors", text))
    return {"fanouts": [int(number) for number in num_neighbors]}


def _algorithm_of(sampling: Mapping[str, Any] | None, weight_attr: str | None) -> Any:
    by_default = "KHOP_UNIFORM" if weight_attr is None else "KHOP_WEIGHTED"
    return (sampling or {}).get("algorithm", by_default)


def _wrong_sampling(
    drawn: Any, weight_attr: str | None, form: str, edge_ids: bool | None
) -> list[Violation]:
    """What is wrong with an algorithm, and with what is asked of edges beside it."""
    if drawn not in _ALGORITHMS:
        return [Violation("sampling.algorithm", one_of(drawn, _ALGORITHMS))]
    found = []
    if weight_attr is not None and drawn != "KHOP_WEIGHTED":
        text = f"{shown(weight_attr)}: {drawn} draws without weights; expected KHOP_WEIGHTED"
        found.append(Violation("weight_attr", text))
    if edge_ids and drawn == "RANDOM_WALK":
        text = "True: walks draw nodes that need not be neighbours; expected False"
        found.append(Violation("edge_ids", text))
    if edge_ids and form == "layers":
        text = 'True: the form layers has matrices without numbers of edges; expected form="pyg"'
        found.append(Violation("edge_ids", text))
    return found


def _has_numbers(source: supply.Source | typed_supply.TypedSource, drawn: str, form: str) -> bool:
    """Whether edges have numbers unless somebody says so: where they have something of theirs."""
    names = source.edge_names
    if names and (drawn == "RANDOM_WALK" or form == "layers"):
        why = "walks draw no edges" if drawn == "RANDOM_WALK" else f"the form is {form}"
        text = f"attributes of edges are left out of batches: {', '.join(names)} ({why})"
        warnings.warn(f"gnnd.loader(): {text}", stacklevel=4)
        return False
    return bool(names)


def _wrong_others(others: Mapping[str, Any]) -> list[Violation]:
    """What is wrong with arguments that only NeighborLoader has."""
    found = []
    known = [name for name in inspect.signature(loader).parameters if name != "others"]
    for name, value in others.items():
        if name not in _NEUTRAL:
            text = f"there is no such argument{advice(name, known)}; there are {', '.join(known)}"
            found.append(Violation(name, text))
        elif _NEUTRAL[name] is not ... and value != _NEUTRAL[name]:
            text = f"{shown(value)}: a loader has only {_NEUTRAL[name]!r} (docs/loader.md#limits)"
            found.append(Violation(name, text))
    return found


class Loader:
    """What `gnnd.loader` gives. Each `for` over it is an epoch; `close` ends its job."""

    def __init__(
        self,
        *,
        source: supply.Source | typed_supply.TypedSource,
        items: Items,
        options: Mapping[str, Any],
        shape: forms.Shape,
        readers: tuple[int, int, str | None],
        ahead: tuple[int, bool],
    ) -> None:
        self._source = source
        self._options = dict(options)
        self._shape = shape
        self._rank, self._world, self._job_given = readers
        self._prefetch, self._drop_last = ahead
        self._items = items
        self._folder: Path | None = None
        self._job: Job | None = None
        self._reader: Reader | None = None
        self._pool: ThreadPoolExecutor | None = None
        #: The batch that the loop gets next.
        self._epoch, self._index = 0, 0
        self._is_within = False
        atexit.register(self.close)

    # What loaders of torch have, too.

    @property
    def data(self) -> Any:
        """The `Data` that it was made of; attributes that change are in the batches that follow."""
        return self._source.data

    @property
    def dataset(self) -> range:
        """As long as there are seeds."""
        return range(len(self._items))

    def __len__(self) -> int:
        """Batches of an epoch; with several ranks those of all of them."""
        seeds, size = len(self._items), int(self._options["batch_size"])
        return seeds // size if self._drop_last else -(-seeds // size)

    def __iter__(self) -> Iterator[Any]:
        if self._is_within:  # The loop left the epoch before its end.
            self._epoch, self._index = self._epoch + 1, 0
        self._start()
        epoch = self._epoch
        self._is_within = True
        for index, batch in self._fetched(epoch, self._wanted(epoch, self._index)):
            self._index = index + 1
            yield batch
        self._epoch, self._index, self._is_within = epoch + 1, 0, False

    def state_dict(self) -> dict[str, Any]:
        """Where the loop is: the epoch and the batch that come next, and what batches depend on."""
        return {"epoch": self._epoch, "batch": self._index, "of": self._of()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes on where another loader of the same batches was: the next `for` begins there."""
        given, own = state.get("of"), self._of()
        if not isinstance(given, Mapping):
            raise GnndError("the state is none of a loader: expected what state_dict() gave")
        unlike = [
            f"{name}: {shown(given.get(name))}, and this one's is {shown(own.get(name))}"
            for name in {**own, **given}
            if given.get(name) != own.get(name)
        ]
        if unlike:
            raise GnndError(f"the state is that of another loader; {'; '.join(unlike)}")
        self._leave()
        self._epoch, self._index = int(state["epoch"]), int(state["batch"])
        self._is_within = False

    # What only this loader has.

    @property
    def job_id(self) -> str:
        """The job that draws the batches, which other ranks name."""
        return self._started_job().id

    def close(self) -> None:
        """Ends the job. Without it a loader ends with its process."""
        atexit.unregister(self.close)
        self._leave()
        self._source.close()

    def __enter__(self) -> Loader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Below.

    def _of(self) -> dict[str, Any]:
        """What batches depend on, and which of them are this rank's."""
        kept = ("sampling", "relations", "batch_size", "shuffle", "seed")
        return {
            **{key: self._options[key] for key in kept if key in self._options},
            **{"graph": self._source.digest, **self._items.about()},
            **{"rank": self._rank, "world_size": self._world},
        }

    def _started_job(self) -> Job:
        if self._job is None:
            client = self._source.client
            self._job = client.job(self._job_given) if self._job_given else self._submit(client)
        return self._job

    def _submit(self, client: Client) -> Job:
        load: dict[str, Any] = {
            "shuffle": self._options["shuffle"],
            "first_epoch": self._epoch,
        }
        self._folder = Path(tempfile.mkdtemp(prefix="gnnd-loader-"))
        load |= self._items.saved(self._folder)
        devices = self._options["samplers"] + 1 if self._options["samplers"] else None
        return client.submit_spec(
            {
                "kind": "LOAD",
                "dataset": self._source.dataset_id,
                "load": load,
                **{key: self._options[key] for key in _OF_SPEC if key in self._options},
                "training": {
                    "epochs": _EPOCHS,
                    "batch_size": min(self._options["batch_size"], max(1, len(self._items))),
                    "random_seed": self._options["seed"],
                },
                "resources": {"device_kind": "CPU", **({"devices": devices} if devices else {})},
            }
        )

    def _start(self) -> None:
        self._started_job()
        if self._reader is None:
            self._joined()
        if self._prefetch > 0 and self._pool is None:
            self._pool = ThreadPoolExecutor(1, thread_name_prefix="gnnd-loader")

    def _joined(self) -> Reader:
        """Joins the job as a reader, once it lends."""
        job = self._started_job()
        threads = max(1, min(8, len(os.sched_getaffinity(0))))
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while True:
            try:
                self._reader = Reader(
                    f"gnnd-{job.message.uid}", rank=self._rank, world=self._world, threads=threads
                )
                return self._reader
            except Gone as error:
                self._check_lives(job)
                if time.monotonic() > deadline:
                    waits = job.message.message or job.state
                    raise GnndError(f"job {job.id} lends no batches: {waits}; {error}") from None
                time.sleep(0.02)

    def _check_lives(self, job: Job) -> None:
        if watch.is_terminal(job.refresh().message):
            raise GnndError(f"job {job.id} ended: {job.message.message or job.state}")

    def _leave(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True)
            self._pool = None
        if self._reader is not None:
            self._reader.close()
            self._reader = None
        elif self._job is not None and self._job_given is None:
            # Nobody reads its batches; without its reader it ends by itself.
            with suppress(GnndError):
                self._job.cancel()
        self._job = None
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def _wanted(self, epoch: int, begin: int) -> list[int]:
        """Batches of the epoch that are this rank's, from `begin` on."""
        assert self._reader is not None
        size = self._reader.facts.batches_per_epoch
        end = len(self) if self._drop_last else size
        mine = range(begin, end)
        return [index for index in mine if (epoch * size + index) % self._world == self._rank]

    def _fetched(self, epoch: int, wanted: Sequence[int]) -> Iterator[tuple[int, Any]]:
        """These batches in order, some of them copied ahead."""
        if self._pool is None:
            for index in wanted:
                yield index, self._fetch(epoch, index)
            return
        ahead: deque[Future[Any]] = deque()
        try:
            for place, index in enumerate(wanted):
                for next_index in wanted[place + len(ahead) : place + 1 + self._prefetch]:
                    ahead.append(self._pool.submit(self._fetch, epoch, next_index))
                yield index, ahead.popleft().result()
        finally:
            for future in ahead:
                future.cancel()

    def _fetch(self, epoch: int, index: int) -> Any:
        """Reads batches up to this one, and copies it."""
        while True:
            try:
                reader = self._reader or self._joined()
                batch = reader.next(_LOOK_MS)
                if batch is None:
                    continue
                is_wanted = (batch.epoch, batch.index) == (epoch, index)
                made = self._shape.made(reader, batch, self._source) if is_wanted else None
                if (batch.epoch, batch.index) > (epoch, index):
                    raise GnndError(
                        f"batch {index} of epoch {epoch} was read before: another loader has this "
                        "rank of the job"
                    )
                reader.give_back()
                if is_wanted:
                    return made
            except Gone:
                # Its job has ended, or another lender comes, which lends what was not returned.
                if self._reader is not None:
                    self._reader.close()
                self._reader = None
