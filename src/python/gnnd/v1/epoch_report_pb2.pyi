from gnnd.v1 import executor_pb2 as _executor_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Metric(_message.Message):
    __slots__ = ("name", "value")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    name: str
    value: float
    def __init__(self, name: _Optional[str] = ..., value: _Optional[float] = ...) -> None: ...

class EpochReport(_message.Message):
    __slots__ = ("epoch", "batches", "steps", "retries", "loss", "train_accuracy", "val_accuracy", "duration_ms", "version", "parameters_sha256", "ledger_digest", "batches_by_device", "executor_times", "extract_ns", "train_ns", "locality_scale", "val_metrics")
    class BatchesByDeviceEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    BATCHES_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    RETRIES_FIELD_NUMBER: _ClassVar[int]
    LOSS_FIELD_NUMBER: _ClassVar[int]
    TRAIN_ACCURACY_FIELD_NUMBER: _ClassVar[int]
    VAL_ACCURACY_FIELD_NUMBER: _ClassVar[int]
    DURATION_MS_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    PARAMETERS_SHA256_FIELD_NUMBER: _ClassVar[int]
    LEDGER_DIGEST_FIELD_NUMBER: _ClassVar[int]
    BATCHES_BY_DEVICE_FIELD_NUMBER: _ClassVar[int]
    EXECUTOR_TIMES_FIELD_NUMBER: _ClassVar[int]
    EXTRACT_NS_FIELD_NUMBER: _ClassVar[int]
    TRAIN_NS_FIELD_NUMBER: _ClassVar[int]
    LOCALITY_SCALE_FIELD_NUMBER: _ClassVar[int]
    VAL_METRICS_FIELD_NUMBER: _ClassVar[int]
    epoch: int
    batches: int
    steps: int
    retries: int
    loss: float
    train_accuracy: float
    val_accuracy: float
    duration_ms: int
    version: int
    parameters_sha256: str
    ledger_digest: str
    batches_by_device: _containers.ScalarMap[str, int]
    executor_times: _containers.RepeatedCompositeFieldContainer[_executor_pb2.ExecutorTimes]
    extract_ns: int
    train_ns: int
    locality_scale: float
    val_metrics: _containers.RepeatedCompositeFieldContainer[Metric]
    def __init__(self, epoch: _Optional[int] = ..., batches: _Optional[int] = ..., steps: _Optional[int] = ..., retries: _Optional[int] = ..., loss: _Optional[float] = ..., train_accuracy: _Optional[float] = ..., val_accuracy: _Optional[float] = ..., duration_ms: _Optional[int] = ..., version: _Optional[int] = ..., parameters_sha256: _Optional[str] = ..., ledger_digest: _Optional[str] = ..., batches_by_device: _Optional[_Mapping[str, int]] = ..., executor_times: _Optional[_Iterable[_Union[_executor_pb2.ExecutorTimes, _Mapping]]] = ..., extract_ns: _Optional[int] = ..., train_ns: _Optional[int] = ..., locality_scale: _Optional[float] = ..., val_metrics: _Optional[_Iterable[_Union[Metric, _Mapping]]] = ...) -> None: ...
