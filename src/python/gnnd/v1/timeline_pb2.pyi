import datetime

from gnnd.v1 import executor_pb2 as _executor_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class JobTimeline(_message.Message):
    __slots__ = ("attempt", "queue_capacity", "stretches")
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    QUEUE_CAPACITY_FIELD_NUMBER: _ClassVar[int]
    STRETCHES_FIELD_NUMBER: _ClassVar[int]
    attempt: int
    queue_capacity: int
    stretches: _containers.RepeatedCompositeFieldContainer[TimelineStretch]
    def __init__(self, attempt: _Optional[int] = ..., queue_capacity: _Optional[int] = ..., stretches: _Optional[_Iterable[_Union[TimelineStretch, _Mapping]]] = ...) -> None: ...

class TimelineStretch(_message.Message):
    __slots__ = ("start_time", "duration_ns", "queue_depth", "executors")
    START_TIME_FIELD_NUMBER: _ClassVar[int]
    DURATION_NS_FIELD_NUMBER: _ClassVar[int]
    QUEUE_DEPTH_FIELD_NUMBER: _ClassVar[int]
    EXECUTORS_FIELD_NUMBER: _ClassVar[int]
    start_time: _timestamp_pb2.Timestamp
    duration_ns: int
    queue_depth: float
    executors: _containers.RepeatedCompositeFieldContainer[_executor_pb2.ExecutorTimes]
    def __init__(self, start_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., duration_ns: _Optional[int] = ..., queue_depth: _Optional[float] = ..., executors: _Optional[_Iterable[_Union[_executor_pb2.ExecutorTimes, _Mapping]]] = ...) -> None: ...
