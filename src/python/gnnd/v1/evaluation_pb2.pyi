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
EVALUATION_METHOD_UNSPECIFIED: EvaluationMethod
EVALUATION_METHOD_AUTO: EvaluationMethod
EVALUATION_METHOD_EXACT: EvaluationMethod
EVALUATION_METHOD_SAMPLED: EvaluationMethod

class EvaluationSpec(_message.Message):
    __slots__ = ("every_epochs", "method", "fanouts", "max_bytes")
    EVERY_EPOCHS_FIELD_NUMBER: _ClassVar[int]
    METHOD_FIELD_NUMBER: _ClassVar[int]
    FANOUTS_FIELD_NUMBER: _ClassVar[int]
    MAX_BYTES_FIELD_NUMBER: _ClassVar[int]
    every_epochs: int
    method: EvaluationMethod
    fanouts: _containers.RepeatedScalarFieldContainer[int]
    max_bytes: int
    def __init__(self, every_epochs: _Optional[int] = ..., method: _Optional[_Union[EvaluationMethod, str]] = ..., fanouts: _Optional[_Iterable[int]] = ..., max_bytes: _Optional[int] = ...) -> None: ...
