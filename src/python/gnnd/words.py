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
#: What other libraries have an argument for and gnnd has not, by words of theirs.
_INSTEAD = {
    **dict.fromkeys(
        ("tasktype", "objective", "problemtype", "loss", "lossfn", "criterion"),
        "what is learnt of nodes follows from the dataset, which imports take task='REGRESSION' "
        "or 'MULTI_LABEL' for (docs/datasets.md); task=gnnd.Links() learns which nodes belong "
        "together, with a loss of its own; whole graphs are not there",
    ),
    **dict.fromkeys(
        ("shuffle",), "every epoch is a new permutation, keyed by random_seed (docs/sampling.md)"
    ),
    **dict.fromkeys(
        ("numworkers", "workers"), "placement={'policy': …} decides how many devices sample"
    ),
    **dict.fromkeys(("device", "cuda", "gpu"), "resources={'device_names': […]} names devices"),
}
#: Values of the spec by what other libraries call them.
_VALUES = {
    **dict.fromkeys(("neighbor", "neighbour", "neighborsampler", "uniform"), "KHOP_UNIFORM"),
    **dict.fromkeys(("weighted", "weightedneighbor"), "KHOP_WEIGHTED"),
    **dict.fromkeys(("walk", "node2vec", "deepwalk"), "RANDOM_WALK"),
    **dict.fromkeys(("full", "fullgraph"), "EXACT"),
    **{"true": "ON", "false": "OFF"},
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
    if lack := lacking(word):
        return lack
    if _plain(word) in _OF_DATASET:
        return "; it follows from the dataset"
    near = nearest(word, names)
    return "" if near is None else f"; did you mean {near}?"


def lacking(word: Any) -> str:
    """What there is instead, after a semicolon, of an argument that others have; empty: unknown."""
    instead = _INSTEAD.get(_plain(word))
    return "" if instead is None else f"; {instead}"


def nearest(word: Any, known: Iterable[str]) -> str | None:
    """The one of `known` that is spelt most like `word`, if any is near."""
    plain = {_plain(name): name for name in known}
    near = difflib.get_close_matches(_plain(word), plain, n=1)
    return plain[near[0]] if near else None


def one_of(word: Any, known: Iterable[str]) -> str:
    """That `word` is none of `known`, which are all named, and which is near."""
    names = list(known)
    called = _VALUES.get(_plain(word))
    near = f"; it is called {called} here" if called in names else advice(word, names)
    return f"{shown(word)}: expected one of {', '.join(names)}{near}"


def shown(value: Any) -> str:
    """A value as an error has it: its `repr`, of what is long the begin."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 80 else f"{text[:77]}..."


def _plain(word: Any) -> str:
    return re.sub(r"[^a-z0-9]", "", str(word).lower())
