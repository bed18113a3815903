from gnnd.v1 import epoch_report_pb2 as _epoch_report_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class CheckpointKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CHECKPOINT_KIND_UNSPECIFIED: _ClassVar[CheckpointKind]
    CHECKPOINT_KIND_BEST: _ClassVar[CheckpointKind]
    CHECKPOINT_KIND_LAST: _ClassVar[CheckpointKind]

class PredictionNodes(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PREDICTION_NODES_UNSPECIFIED: _ClassVar[PredictionNodes]
    PREDICTION_NODES_NONE: _ClassVar[PredictionNodes]
    PREDICTION_NODES_ALL: _ClassVar[PredictionNodes]
    PREDICTION_NODES_VAL: _ClassVar[PredictionNodes]
    PREDICTION_NODES_TEST: _ClassVar[PredictionNodes]
CHECKPOINT_KIND_UNSPECIFIED: CheckpointKind
CHECKPOINT_KIND_BEST: CheckpointKind
CHECKPOINT_KIND_LAST: CheckpointKind
PREDICTION_NODES_UNSPECIFIED: PredictionNodes
PREDICTION_NODES_NONE: PredictionNodes
PREDICTION_NODES_ALL: PredictionNodes
PREDICTION_NODES_VAL: PredictionNodes
PREDICTION_NODES_TEST: PredictionNodes

class ExportPredictionsRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class ExportPredictionsResponse(_message.Message):
    __slots__ = ("file", "data")
    FILE_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    file: ExportFile
    data: bytes
    def __init__(self, file: _Optional[_Union[ExportFile, _Mapping]] = ..., data: _Optional[bytes] = ...) -> None: ...

class Checkpoint(_message.Message):
    __slots__ = ("job", "kind", "epoch", "val_accuracy", "test_accuracy", "path", "bytes", "sha256", "parameters_sha256", "tensors", "val_metrics", "test_metrics")
    JOB_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    VAL_ACCURACY_FIELD_NUMBER: _ClassVar[int]
    TEST_ACCURACY_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    SHA256_FIELD_NUMBER: _ClassVar[int]
    PARAMETERS_SHA256_FIELD_NUMBER: _ClassVar[int]
    TENSORS_FIELD_NUMBER: _ClassVar[int]
    VAL_METRICS_FIELD_NUMBER: _ClassVar[int]
    TEST_METRICS_FIELD_NUMBER: _ClassVar[int]
    job: str
    kind: CheckpointKind
    epoch: int
    val_accuracy: float
    test_accuracy: float
    path: str
    bytes: int
    sha256: str
    parameters_sha256: str
    tensors: _containers.RepeatedCompositeFieldContainer[CheckpointTensor]
    val_metrics: _containers.RepeatedCompositeFieldContainer[_epoch_report_pb2.Metric]
    test_metrics: _containers.RepeatedCompositeFieldContainer[_epoch_report_pb2.Metric]
    def __init__(self, job: _Optional[str] = ..., kind: _Optional[_Union[CheckpointKind, str]] = ..., epoch: _Optional[int] = ..., val_accuracy: _Optional[float] = ..., test_accuracy: _Optional[float] = ..., path: _Optional[str] = ..., bytes: _Optional[int] = ..., sha256: _Optional[str] = ..., parameters_sha256: _Optional[str] = ..., tensors: _Optional[_Iterable[_Union[CheckpointTensor, _Mapping]]] = ..., val_metrics: _Optional[_Iterable[_Union[_epoch_report_pb2.Metric, _Mapping]]] = ..., test_metrics: _Optional[_Iterable[_Union[_epoch_report_pb2.Metric, _Mapping]]] = ...) -> None: ...

class CheckpointTensor(_message.Message):
    __slots__ = ("name", "shape")
    NAME_FIELD_NUMBER: _ClassVar[int]
    SHAPE_FIELD_NUMBER: _ClassVar[int]
    name: str
    shape: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, name: _Optional[str] = ..., shape: _Optional[_Iterable[int]] = ...) -> None: ...

class ListCheckpointsRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class ListCheckpointsResponse(_message.Message):
    __slots__ = ("checkpoints",)
    CHECKPOINTS_FIELD_NUMBER: _ClassVar[int]
    checkpoints: _containers.RepeatedCompositeFieldContainer[Checkpoint]
    def __init__(self, checkpoints: _Optional[_Iterable[_Union[Checkpoint, _Mapping]]] = ...) -> None: ...

class ExportCheckpointRequest(_message.Message):
    __slots__ = ("name", "kind", "predictions", "memory_bytes", "fold_standardization")
    NAME_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    PREDICTIONS_FIELD_NUMBER: _ClassVar[int]
    MEMORY_BYTES_FIELD_NUMBER: _ClassVar[int]
    FOLD_STANDARDIZATION_FIELD_NUMBER: _ClassVar[int]
    name: str
    kind: CheckpointKind
    predictions: PredictionNodes
    memory_bytes: int
    fold_standardization: bool
    def __init__(self, name: _Optional[str] = ..., kind: _Optional[_Union[CheckpointKind, str]] = ..., predictions: _Optional[_Union[PredictionNodes, str]] = ..., memory_bytes: _Optional[int] = ..., fold_standardization: bool = ...) -> None: ...

class ExportCheckpointResponse(_message.Message):
    __slots__ = ("checkpoint", "progress", "file", "data")
    CHECKPOINT_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    FILE_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    checkpoint: Checkpoint
    progress: ExportProgress
    file: ExportFile
    data: bytes
    def __init__(self, checkpoint: _Optional[_Union[Checkpoint, _Mapping]] = ..., progress: _Optional[_Union[ExportProgress, _Mapping]] = ..., file: _Optional[_Union[ExportFile, _Mapping]] = ..., data: _Optional[bytes] = ...) -> None: ...

class ExportProgress(_message.Message):
    __slots__ = ("progress", "message")
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    progress: float
    message: str
    def __init__(self, progress: _Optional[float] = ..., message: _Optional[str] = ...) -> None: ...

class ExportFile(_message.Message):
    __slots__ = ("name", "bytes")
    NAME_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    name: str
    bytes: int
    def __init__(self, name: _Optional[str] = ..., bytes: _Optional[int] = ...) -> None: ...
