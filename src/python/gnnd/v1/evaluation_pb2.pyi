from gnnd.v1 import field_pb2 as _field_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class EvaluationMethod(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    EVALUATION_METHOD_UNSPECIFIED: _ClassVar[EvaluationMethod]
    EVALUATION_METHOD_AUTO: _ClassVar[EvaluationMethod]
    EVALUATION_METHOD_EXACT: _ClassVar[EvaluationMethod]
    EVALUATION_METHOD_SAMPLED: _ClassVar[EvaluationMethod]

class DecidingMetric(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    DECIDING_METRIC_UNSPECIFIED: _ClassVar[DecidingMetric]
    DECIDING_METRIC_AUTO: _ClassVar[DecidingMetric]
    DECIDING_METRIC_ACCURACY: _ClassVar[DecidingMetric]
    DECIDING_METRIC_MICRO_F1: _ClassVar[DecidingMetric]
    DECIDING_METRIC_MACRO_F1: _ClassVar[DecidingMetric]
    DECIDING_METRIC_ROC_AUC: _ClassVar[DecidingMetric]
    DECIDING_METRIC_AVERAGE_PRECISION: _ClassVar[DecidingMetric]
    DECIDING_METRIC_MAE: _ClassVar[DecidingMetric]
    DECIDING_METRIC_RMSE: _ClassVar[DecidingMetric]
EVALUATION_METHOD_UNSPECIFIED: EvaluationMethod
EVALUATION_METHOD_AUTO: EvaluationMethod
EVALUATION_METHOD_EXACT: EvaluationMethod
EVALUATION_METHOD_SAMPLED: EvaluationMethod
DECIDING_METRIC_UNSPECIFIED: DecidingMetric
DECIDING_METRIC_AUTO: DecidingMetric
DECIDING_METRIC_ACCURACY: DecidingMetric
DECIDING_METRIC_MICRO_F1: DecidingMetric
DECIDING_METRIC_MACRO_F1: DecidingMetric
DECIDING_METRIC_ROC_AUC: DecidingMetric
DECIDING_METRIC_AVERAGE_PRECISION: DecidingMetric
DECIDING_METRIC_MAE: DecidingMetric
DECIDING_METRIC_RMSE: DecidingMetric

class EvaluationSpec(_message.Message):
    __slots__ = ("every_epochs", "method", "fanouts", "max_bytes", "metric")
    EVERY_EPOCHS_FIELD_NUMBER: _ClassVar[int]
    METHOD_FIELD_NUMBER: _ClassVar[int]
    FANOUTS_FIELD_NUMBER: _ClassVar[int]
    MAX_BYTES_FIELD_NUMBER: _ClassVar[int]
    METRIC_FIELD_NUMBER: _ClassVar[int]
    every_epochs: int
    method: EvaluationMethod
    fanouts: _containers.RepeatedScalarFieldContainer[int]
    max_bytes: int
    metric: DecidingMetric
    def __init__(self, every_epochs: _Optional[int] = ..., method: _Optional[_Union[EvaluationMethod, str]] = ..., fanouts: _Optional[_Iterable[int]] = ..., max_bytes: _Optional[int] = ..., metric: _Optional[_Union[DecidingMetric, str]] = ...) -> None: ...
