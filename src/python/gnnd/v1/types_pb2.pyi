import datetime

from google.protobuf import any_pb2 as _any_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class DatasetTask(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    DATASET_TASK_UNSPECIFIED: _ClassVar[DatasetTask]
    DATASET_TASK_CLASSIFICATION: _ClassVar[DatasetTask]
    DATASET_TASK_MULTI_LABEL: _ClassVar[DatasetTask]
    DATASET_TASK_REGRESSION: _ClassVar[DatasetTask]

class Reason(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    REASON_UNSPECIFIED: _ClassVar[Reason]
    REASON_NONE: _ClassVar[Reason]
    REASON_COMPLETED: _ClassVar[Reason]
    REASON_USER_CANCELLED: _ClassVar[Reason]
    REASON_WAITING_FOR_DEVICES: _ClassVar[Reason]
    REASON_BACKOFF: _ClassVar[Reason]
    REASON_DAEMON_SHUTDOWN: _ClassVar[Reason]
    REASON_DAEMON_RESTARTED: _ClassVar[Reason]
    REASON_SPEC_INVALID: _ClassVar[Reason]
    REASON_DATASET_CORRUPT: _ClassVar[Reason]
    REASON_PLAN_INFEASIBLE: _ClassVar[Reason]
    REASON_PENDING_TIMEOUT: _ClassVar[Reason]
    REASON_STARTUP_TIMEOUT: _ClassVar[Reason]
    REASON_RUN_TIMEOUT: _ClassVar[Reason]
    REASON_EXECUTOR_CRASHED: _ClassVar[Reason]
    REASON_EXECUTOR_STALLED: _ClassVar[Reason]
    REASON_EXECUTOR_UNKILLABLE: _ClassVar[Reason]
    REASON_SHM_ALLOCATION_FAILED: _ClassVar[Reason]
    REASON_SHM_CORRUPTED: _ClassVar[Reason]
    REASON_CHECKPOINT_WRITE_FAILED: _ClassVar[Reason]
    REASON_NUMERIC_DIVERGENCE: _ClassVar[Reason]
    REASON_RESTART_BUDGET_EXHAUSTED: _ClassVar[Reason]
    REASON_STARTUP_BUDGET_EXHAUSTED: _ClassVar[Reason]
    REASON_INTERNAL: _ClassVar[Reason]
    REASON_PLUGIN_FAILED: _ClassVar[Reason]
    REASON_DEVICE_UNAVAILABLE: _ClassVar[Reason]
    REASON_DEVICE_OUT_OF_MEMORY: _ClassVar[Reason]
    REASON_DEVICE_FAILED: _ClassVar[Reason]
    REASON_DEVICE_LOST: _ClassVar[Reason]
    REASON_CHECKPOINT_CORRUPT: _ClassVar[Reason]
    REASON_USER_SUSPENDED: _ClassVar[Reason]
    REASON_HOST_OUT_OF_MEMORY: _ClassVar[Reason]
    REASON_PREEMPTED: _ClassVar[Reason]
    REASON_DEVICE_DRAINED: _ClassVar[Reason]
DATASET_TASK_UNSPECIFIED: DatasetTask
DATASET_TASK_CLASSIFICATION: DatasetTask
DATASET_TASK_MULTI_LABEL: DatasetTask
DATASET_TASK_REGRESSION: DatasetTask
REASON_UNSPECIFIED: Reason
REASON_NONE: Reason
REASON_COMPLETED: Reason
REASON_USER_CANCELLED: Reason
REASON_WAITING_FOR_DEVICES: Reason
REASON_BACKOFF: Reason
REASON_DAEMON_SHUTDOWN: Reason
REASON_DAEMON_RESTARTED: Reason
REASON_SPEC_INVALID: Reason
REASON_DATASET_CORRUPT: Reason
REASON_PLAN_INFEASIBLE: Reason
REASON_PENDING_TIMEOUT: Reason
REASON_STARTUP_TIMEOUT: Reason
REASON_RUN_TIMEOUT: Reason
REASON_EXECUTOR_CRASHED: Reason
REASON_EXECUTOR_STALLED: Reason
REASON_EXECUTOR_UNKILLABLE: Reason
REASON_SHM_ALLOCATION_FAILED: Reason
REASON_SHM_CORRUPTED: Reason
REASON_CHECKPOINT_WRITE_FAILED: Reason
REASON_NUMERIC_DIVERGENCE: Reason
REASON_RESTART_BUDGET_EXHAUSTED: Reason
REASON_STARTUP_BUDGET_EXHAUSTED: Reason
REASON_INTERNAL: Reason
REASON_PLUGIN_FAILED: Reason
REASON_DEVICE_UNAVAILABLE: Reason
REASON_DEVICE_OUT_OF_MEMORY: Reason
REASON_DEVICE_FAILED: Reason
REASON_DEVICE_LOST: Reason
REASON_CHECKPOINT_CORRUPT: Reason
REASON_USER_SUSPENDED: Reason
REASON_HOST_OUT_OF_MEMORY: Reason
REASON_PREEMPTED: Reason
REASON_DEVICE_DRAINED: Reason

class Operation(_message.Message):
    __slots__ = ("name", "kind", "target", "done", "progress", "message", "create_time", "end_time", "error", "response")
    NAME_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    DONE_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    END_TIME_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    RESPONSE_FIELD_NUMBER: _ClassVar[int]
    name: str
    kind: str
    target: str
    done: bool
    progress: float
    message: str
    create_time: _timestamp_pb2.Timestamp
    end_time: _timestamp_pb2.Timestamp
    error: OperationError
    response: _any_pb2.Any
    def __init__(self, name: _Optional[str] = ..., kind: _Optional[str] = ..., target: _Optional[str] = ..., done: bool = ..., progress: _Optional[float] = ..., message: _Optional[str] = ..., create_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., end_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., error: _Optional[_Union[OperationError, _Mapping]] = ..., response: _Optional[_Union[_any_pb2.Any, _Mapping]] = ...) -> None: ...

class OperationError(_message.Message):
    __slots__ = ("code", "reason", "message", "problems")
    CODE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    PROBLEMS_FIELD_NUMBER: _ClassVar[int]
    code: int
    reason: str
    message: str
    problems: _containers.RepeatedCompositeFieldContainer[Problem]
    def __init__(self, code: _Optional[int] = ..., reason: _Optional[str] = ..., message: _Optional[str] = ..., problems: _Optional[_Iterable[_Union[Problem, _Mapping]]] = ...) -> None: ...

class Problem(_message.Message):
    __slots__ = ("path", "description")
    PATH_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    path: str
    description: str
    def __init__(self, path: _Optional[str] = ..., description: _Optional[str] = ...) -> None: ...
