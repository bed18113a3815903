from gnnd.v1 import types_pb2 as _types_pb2
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ExecutorRole(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    EXECUTOR_ROLE_UNSPECIFIED: _ClassVar[ExecutorRole]
    EXECUTOR_ROLE_SAMPLER: _ClassVar[ExecutorRole]
    EXECUTOR_ROLE_TRAINER: _ClassVar[ExecutorRole]
    EXECUTOR_ROLE_STANDBY: _ClassVar[ExecutorRole]
EXECUTOR_ROLE_UNSPECIFIED: ExecutorRole
EXECUTOR_ROLE_SAMPLER: ExecutorRole
EXECUTOR_ROLE_TRAINER: ExecutorRole
EXECUTOR_ROLE_STANDBY: ExecutorRole

class ExecutorStatus(_message.Message):
    __slots__ = ("role", "device", "pid", "busy", "batches", "stage", "cache_hit_rate")
    ROLE_FIELD_NUMBER: _ClassVar[int]
    DEVICE_FIELD_NUMBER: _ClassVar[int]
    PID_FIELD_NUMBER: _ClassVar[int]
    BUSY_FIELD_NUMBER: _ClassVar[int]
    BATCHES_FIELD_NUMBER: _ClassVar[int]
    STAGE_FIELD_NUMBER: _ClassVar[int]
    CACHE_HIT_RATE_FIELD_NUMBER: _ClassVar[int]
    role: ExecutorRole
    device: str
    pid: int
    busy: float
    batches: int
    stage: str
    cache_hit_rate: float
    def __init__(self, role: _Optional[_Union[ExecutorRole, str]] = ..., device: _Optional[str] = ..., pid: _Optional[int] = ..., busy: _Optional[float] = ..., batches: _Optional[int] = ..., stage: _Optional[str] = ..., cache_hit_rate: _Optional[float] = ...) -> None: ...

class ExecutorTimes(_message.Message):
    __slots__ = ("role", "device", "duration_ns", "sample_ns", "mark_ns", "copy_ns", "extract_ns", "train_ns", "apply_ns", "evaluate_ns", "wait_enqueue_ns", "wait_dequeue_ns", "wait_due_ns", "wait_turn_ns", "wait_extract_ns", "prune_ns", "history_ns", "cached_rows", "read_rows", "pruned_rows", "history_lookups", "history_hits", "history_compared", "history_similar", "history_cosine", "history_lag", "peer_rows", "cache_border", "cache_given_up_rows")
    ROLE_FIELD_NUMBER: _ClassVar[int]
    DEVICE_FIELD_NUMBER: _ClassVar[int]
    DURATION_NS_FIELD_NUMBER: _ClassVar[int]
    SAMPLE_NS_FIELD_NUMBER: _ClassVar[int]
    MARK_NS_FIELD_NUMBER: _ClassVar[int]
    COPY_NS_FIELD_NUMBER: _ClassVar[int]
    EXTRACT_NS_FIELD_NUMBER: _ClassVar[int]
    TRAIN_NS_FIELD_NUMBER: _ClassVar[int]
    APPLY_NS_FIELD_NUMBER: _ClassVar[int]
    EVALUATE_NS_FIELD_NUMBER: _ClassVar[int]
    WAIT_ENQUEUE_NS_FIELD_NUMBER: _ClassVar[int]
    WAIT_DEQUEUE_NS_FIELD_NUMBER: _ClassVar[int]
    WAIT_DUE_NS_FIELD_NUMBER: _ClassVar[int]
    WAIT_TURN_NS_FIELD_NUMBER: _ClassVar[int]
    WAIT_EXTRACT_NS_FIELD_NUMBER: _ClassVar[int]
    PRUNE_NS_FIELD_NUMBER: _ClassVar[int]
    HISTORY_NS_FIELD_NUMBER: _ClassVar[int]
    CACHED_ROWS_FIELD_NUMBER: _ClassVar[int]
    READ_ROWS_FIELD_NUMBER: _ClassVar[int]
    PRUNED_ROWS_FIELD_NUMBER: _ClassVar[int]
    HISTORY_LOOKUPS_FIELD_NUMBER: _ClassVar[int]
    HISTORY_HITS_FIELD_NUMBER: _ClassVar[int]
    HISTORY_COMPARED_FIELD_NUMBER: _ClassVar[int]
    HISTORY_SIMILAR_FIELD_NUMBER: _ClassVar[int]
    HISTORY_COSINE_FIELD_NUMBER: _ClassVar[int]
    HISTORY_LAG_FIELD_NUMBER: _ClassVar[int]
    PEER_ROWS_FIELD_NUMBER: _ClassVar[int]
    CACHE_BORDER_FIELD_NUMBER: _ClassVar[int]
    CACHE_GIVEN_UP_ROWS_FIELD_NUMBER: _ClassVar[int]
    role: ExecutorRole
    device: str
    duration_ns: int
    sample_ns: int
    mark_ns: int
    copy_ns: int
    extract_ns: int
    train_ns: int
    apply_ns: int
    evaluate_ns: int
    wait_enqueue_ns: int
    wait_dequeue_ns: int
    wait_due_ns: int
    wait_turn_ns: int
    wait_extract_ns: int
    prune_ns: int
    history_ns: int
    cached_rows: int
    read_rows: int
    pruned_rows: int
    history_lookups: int
    history_hits: int
    history_compared: int
    history_similar: int
    history_cosine: float
    history_lag: int
    peer_rows: int
    cache_border: int
    cache_given_up_rows: int
    def __init__(self, role: _Optional[_Union[ExecutorRole, str]] = ..., device: _Optional[str] = ..., duration_ns: _Optional[int] = ..., sample_ns: _Optional[int] = ..., mark_ns: _Optional[int] = ..., copy_ns: _Optional[int] = ..., extract_ns: _Optional[int] = ..., train_ns: _Optional[int] = ..., apply_ns: _Optional[int] = ..., evaluate_ns: _Optional[int] = ..., wait_enqueue_ns: _Optional[int] = ..., wait_dequeue_ns: _Optional[int] = ..., wait_due_ns: _Optional[int] = ..., wait_turn_ns: _Optional[int] = ..., wait_extract_ns: _Optional[int] = ..., prune_ns: _Optional[int] = ..., history_ns: _Optional[int] = ..., cached_rows: _Optional[int] = ..., read_rows: _Optional[int] = ..., pruned_rows: _Optional[int] = ..., history_lookups: _Optional[int] = ..., history_hits: _Optional[int] = ..., history_compared: _Optional[int] = ..., history_similar: _Optional[int] = ..., history_cosine: _Optional[float] = ..., history_lag: _Optional[int] = ..., peer_rows: _Optional[int] = ..., cache_border: _Optional[int] = ..., cache_given_up_rows: _Optional[int] = ...) -> None: ...

class ExecutorExit(_message.Message):
    __slots__ = ("role", "device", "pid", "exit_code", "signal", "reason", "log_tail")
    ROLE_FIELD_NUMBER: _ClassVar[int]
    DEVICE_FIELD_NUMBER: _ClassVar[int]
    PID_FIELD_NUMBER: _ClassVar[int]
    EXIT_CODE_FIELD_NUMBER: _ClassVar[int]
    SIGNAL_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    LOG_TAIL_FIELD_NUMBER: _ClassVar[int]
    role: ExecutorRole
    device: str
    pid: int
    exit_code: int
    signal: str
    reason: _types_pb2.Reason
    log_tail: str
    def __init__(self, role: _Optional[_Union[ExecutorRole, str]] = ..., device: _Optional[str] = ..., pid: _Optional[int] = ..., exit_code: _Optional[int] = ..., signal: _Optional[str] = ..., reason: _Optional[_Union[_types_pb2.Reason, str]] = ..., log_tail: _Optional[str] = ...) -> None: ...
