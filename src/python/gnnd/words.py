"""Words that are not known here, and what they may have meant."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from typing import Any

from gnnd.v1 import field_pb2, model_pb2

#: What other libraries call types of models, as options of the enum in the proto tell.
_TYPES = {
    word: value.name.removeprefix("MODEL_TYPE_")
    for value in model_pb2.ModelType.DESCRIPTOR.values
    for word in value.GetOptions().Extensions[field_pb2.model].words
}
#: Models, and arguments of models and of `Client.submit`, by what torch_geometric, DGL and PyTorch
#: call them. Spelling is not looked at: `numLayers` and `num_layers` are one word.
_FOREIGN = {
    **dict.fromkeys(("hiddenchannels", "hiddendim", "hiddensize", "hiddenfeats"), "hidden"),
    **dict.fromkeys(("numlayers", "nlayers"), "layers"),
    **dict.fromkeys(("numheads", "nheads"), "heads"),
    **dict.fromkeys(("act", "nonlinearity"), "activation"),
    **dict.fromkeys(("norm", "batchnorm"), "normalization"),
    **dict.fromkeys(("attndrop", "attentiondrop"), "attention_dropout"),
    **dict.fromkeys(("k", "numhops"), "hops"),
    **dict.fromkeys(("numepochs", "maxepochs"), "epochs"),
    **dict.fromkeys(("numneighbors", "fanout", "numsamples"), "fanouts"),
    **dict.fromkeys(("seed", "randomstate"), "random_seed"),
    **dict.fromkeys(("gpus", "numgpus"), "devices"),
    **{"featdrop": "input_dropout", "lr": "learning_rate", "wd": "weight_decay"},
    **{"bs": "batch_size", "earlystopping": "patience"},
    **_TYPES,
}
_OF_DATASET = {
    *("inchannels", "outchannels", "infeats", "outfeats"),
    *("numfeatures", "numclasses", "numnodes"),
}


def meaning(word: Any) -> str | None:
    """What another library's word is called here; None where it is not known."""
    return _FOREIGN.get(_plain(word))


def advice(word: Any, known: Iterable[str]) -> str:
    """What to do instead of `word`, after a semicolon: one of `known`, if any is near."""
    names = list(known)
    called = meaning(word)
    if called in names:
        return f"; it is called {called} here"
    if _plain(word) in _OF_DATASET:
        return "; it follows from the dataset"
    plain = {_plain(name): name for name in names}
    near = difflib.get_close_matches(_plain(word), plain, n=1)
    return f"; did you mean {plain[near[0]]}?" if near else ""


def one_of(word: Any, known: Iterable[str]) -> str:
    """That `word` is none of `known`, which are all named, and which is near."""
    names = list(known)
    return f"{shown(word)}: expected one of {', '.join(names)}{advice(word, names)}"


def shown(value: Any) -> str:
    """A value as an error has it: its `repr`, of what is long the begin."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 80 else f"{text[:77]}..."


def _plain(word: Any) -> str:
    return re.sub(r"[^a-z0-9]", "", str(word).lower())
