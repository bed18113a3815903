"""The epochs of a job as records, and as files for other programs."""

from __future__ import annotations

import csv
import json
import math
import os
import struct
import time
from pathlib import Path
from typing import Any

import numpy as np

from gnnd.errors import Violation, wrong
from gnnd.learnt import Learnt

Record = dict[str, Any]

ACCURACIES = ("train_accuracy", "val_accuracy")
LABELS = ("val_micro_f1", "val_macro_f1", "val_roc_auc", "val_average_precision")
ERRORS = ("val_mae", "val_rmse")
#: What names of ranks of links begin with; how many negatives they are among follows.
RANKS = ("val_mrr@", "val_hits@")


def record_of(report: Any, task: Learnt) -> Record:
    """The numbers of an epoch's report, as `Job.records` has them; accuracies are of classes."""
    accuracies = {
        "train_accuracy": report.train_accuracy,
        "val_accuracy": report.val_accuracy if report.HasField("val_accuracy") else math.nan,
    }
    return {
        "epoch": report.epoch,
        "loss": report.loss,
        **(accuracies if task == "CLASSIFICATION" else {}),
        "seconds": report.duration_ms / 1000,
        "batches": report.batches,
        "steps": report.steps,
        "retries": report.retries,
        "version": report.version,
        **{f"val_{it.name}": it.value for it in report.val_metrics if it.name != "accuracy"},
    }


def curves(records: list[Record]) -> list[list[str]]:
    """What is drawn beside each other: the loss, and what decides on the validation nodes."""
    known = {name: None for record in records for name in numbers(record)}
    ranked = [name for name in known if name.startswith(RANKS)]
    if ranked:
        return [["loss"], ranked[:2]]
    for names in (ACCURACIES, LABELS, ERRORS):
        found: list[str] = [name for name in names if name in known]
        if found:
            return [["loss"], found]
    return [["loss"]]


def is_minimised(metric: str) -> bool:
    """Whether less of it is better."""
    return metric == "loss" or metric in ERRORS


def numbers(record: Record) -> dict[str, float]:
    """What of a record is a metric: not its epoch, and no NaN."""
    return {
        name: float(value)
        for name, value in record.items()
        if name != "epoch" and not math.isnan(value)
    }


def write(records: list[Record], path: str | os.PathLike[str], tag: str) -> Path:
    """A `.csv` or `.jsonl` file, or a folder of TensorBoard's, by the path's ending."""
    target = Path(path)
    if target.suffix == ".csv":
        with open(target, "w", newline="", encoding="utf-8") as file:
            # An epoch that was not evaluated lacks some.
            names = list(dict.fromkeys(name for record in records for name in record))
            writer = csv.DictWriter(file, names or ["epoch"])
            writer.writeheader()
            writer.writerows(records)
    elif target.suffix == ".jsonl":
        lines = (json.dumps({k: _json(v) for k, v in record.items()}) for record in records)
        target.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    elif target.suffix == "":
        target.mkdir(parents=True, exist_ok=True)
        name = f"events.out.tfevents.{int(time.time())}.{tag}"
        target = target / name
        target.write_bytes(tensorboard_events(records, time.time()))
    else:
        text = f"{target.name}: expected .csv, .jsonl, or a folder for TensorBoard"
        raise wrong("export_history()", Violation("path", text))
    return target


def _json(value: Any) -> Any:
    return None if isinstance(value, float) and math.isnan(value) else value


def tensorboard_events(records: list[Record], at: float) -> bytes:
    """An event file: one scalar a metric and epoch. `at` is its time in seconds since 1970.

    The format is that of TensorFlow's record files: length, masked CRC-32C of it, data, CRC of
    that; the data are protobuf messages `Event` (wall_time 1, step 2, file_version 3, summary 5).
    """
    events = [_double(1, at) + _bytes(3, b"brain.Event:2")]
    for record in records:
        values = b"".join(
            _bytes(1, _bytes(1, name.encode()) + _float(2, value))
            for name, value in numbers(record).items()
        )
        step = bytes([2 << 3]) + _varint(record["epoch"])
        events.append(_double(1, at) + step + _bytes(5, values))
    return b"".join(_record(event) for event in events)


def _bytes(number: int, data: bytes) -> bytes:
    """A field of protobuf: bytes, a text or a message."""
    return bytes([number << 3 | 2]) + _varint(len(data)) + data


def _double(number: int, value: float) -> bytes:
    return bytes([number << 3 | 1]) + struct.pack("<d", value)


def _float(number: int, value: float) -> bytes:
    return bytes([number << 3 | 5]) + np.float32(value).tobytes()


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _record(data: bytes) -> bytes:
    head = struct.pack("<Q", len(data))
    return head + _masked_crc(head) + data + _masked_crc(data)


def _masked_crc(data: bytes) -> bytes:
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _CRC_TABLE[(crc ^ byte) & 0xFF] ^ crc >> 8
    crc ^= 0xFFFFFFFF
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def _crc_table() -> list[int]:
    """Of the Castagnoli polynomial, reflected."""
    table = []
    for entry in range(256):
        value = entry
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)
    return table


_CRC_TABLE = _crc_table()
