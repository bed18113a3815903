from gnnd.v1 import field_pb2 as _field_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable
from typing import ClassVar as _ClassVar, Optional as _Optional

DESCRIPTOR: _descriptor.FileDescriptor

class HistorySpec(_message.Message):
    __slots__ = ("stale_steps", "gradient_share", "start_step", "levels", "max_bytes")
    STALE_STEPS_FIELD_NUMBER: _ClassVar[int]
    GRADIENT_SHARE_FIELD_NUMBER: _ClassVar[int]
    START_STEP_FIELD_NUMBER: _ClassVar[int]
    LEVELS_FIELD_NUMBER: _ClassVar[int]
    MAX_BYTES_FIELD_NUMBER: _ClassVar[int]
    stale_steps: int
    gradient_share: float
    start_step: int
    levels: _containers.RepeatedScalarFieldContainer[int]
    max_bytes: int
    def __init__(self, stale_steps: _Optional[int] = ..., gradient_share: _Optional[float] = ..., start_step: _Optional[int] = ..., levels: _Optional[_Iterable[int]] = ..., max_bytes: _Optional[int] = ...) -> None: ...
