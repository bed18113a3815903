import datetime

from gnnd.v1 import epoch_report_pb2 as _epoch_report_pb2
from gnnd.v1 import executor_pb2 as _executor_pb2
from gnnd.v1 import job_pb2 as _job_pb2
from gnnd.v1 import job_plan_pb2 as _job_plan_pb2
from gnnd.v1 import job_spec_pb2 as _job_spec_pb2
from gnnd.v1 import timeline_pb2 as _timeline_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class WatchType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    WATCH_TYPE_UNSPECIFIED: _ClassVar[WatchType]
    WATCH_TYPE_SNAPSHOT: _ClassVar[WatchType]
    WATCH_TYPE_CHANGED: _ClassVar[WatchType]
    WATCH_TYPE_PROGRESS: _ClassVar[WatchType]
    WATCH_TYPE_BOOKMARK: _ClassVar[WatchType]
    WATCH_TYPE_DELETED: _ClassVar[WatchType]
    WATCH_TYPE_EPOCHS: _ClassVar[WatchType]
WATCH_TYPE_UNSPECIFIED: WatchType
WATCH_TYPE_SNAPSHOT: WatchType
WATCH_TYPE_CHANGED: WatchType
WATCH_TYPE_PROGRESS: WatchType
WATCH_TYPE_BOOKMARK: WatchType
WATCH_TYPE_DELETED: WatchType
WATCH_TYPE_EPOCHS: WatchType

class CreateJobRequest(_message.Message):
    __slots__ = ("job_id", "spec", "validate_only", "request_id")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    SPEC_FIELD_NUMBER: _ClassVar[int]
    VALIDATE_ONLY_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    spec: _job_spec_pb2.JobSpec
    validate_only: bool
    request_id: str
    def __init__(self, job_id: _Optional[str] = ..., spec: _Optional[_Union[_job_spec_pb2.JobSpec, _Mapping]] = ..., validate_only: bool = ..., request_id: _Optional[str] = ...) -> None: ...

class GetJobRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class ListJobsRequest(_message.Message):
    __slots__ = ("page_size", "page_token", "states")
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    STATES_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    states: _containers.RepeatedScalarFieldContainer[_job_pb2.JobState]
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., states: _Optional[_Iterable[_Union[_job_pb2.JobState, str]]] = ...) -> None: ...

class ListJobsResponse(_message.Message):
    __slots__ = ("jobs", "next_page_token")
    JOBS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    jobs: _containers.RepeatedCompositeFieldContainer[_job_pb2.Job]
    next_page_token: str
    def __init__(self, jobs: _Optional[_Iterable[_Union[_job_pb2.Job, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class CancelJobRequest(_message.Message):
    __slots__ = ("name", "request_id")
    NAME_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    name: str
    request_id: str
    def __init__(self, name: _Optional[str] = ..., request_id: _Optional[str] = ...) -> None: ...

class SuspendJobRequest(_message.Message):
    __slots__ = ("name", "request_id")
    NAME_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    name: str
    request_id: str
    def __init__(self, name: _Optional[str] = ..., request_id: _Optional[str] = ...) -> None: ...

class ResumeJobRequest(_message.Message):
    __slots__ = ("name", "request_id")
    NAME_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    name: str
    request_id: str
    def __init__(self, name: _Optional[str] = ..., request_id: _Optional[str] = ...) -> None: ...

class RetryJobRequest(_message.Message):
    __slots__ = ("name", "from_beginning", "request_id")
    NAME_FIELD_NUMBER: _ClassVar[int]
    FROM_BEGINNING_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    name: str
    from_beginning: bool
    request_id: str
    def __init__(self, name: _Optional[str] = ..., from_beginning: bool = ..., request_id: _Optional[str] = ...) -> None: ...

class DeleteJobRequest(_message.Message):
    __slots__ = ("name", "force", "keep_checkpoint", "allow_missing", "request_id")
    NAME_FIELD_NUMBER: _ClassVar[int]
    FORCE_FIELD_NUMBER: _ClassVar[int]
    KEEP_CHECKPOINT_FIELD_NUMBER: _ClassVar[int]
    ALLOW_MISSING_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    name: str
    force: bool
    keep_checkpoint: bool
    allow_missing: bool
    request_id: str
    def __init__(self, name: _Optional[str] = ..., force: bool = ..., keep_checkpoint: bool = ..., allow_missing: bool = ..., request_id: _Optional[str] = ...) -> None: ...

class DeleteJobResponse(_message.Message):
    __slots__ = ("pending", "kept_checkpoint")
    PENDING_FIELD_NUMBER: _ClassVar[int]
    KEPT_CHECKPOINT_FIELD_NUMBER: _ClassVar[int]
    pending: bool
    kept_checkpoint: str
    def __init__(self, pending: bool = ..., kept_checkpoint: _Optional[str] = ...) -> None: ...

class ListEpochsRequest(_message.Message):
    __slots__ = ("name", "attempt", "page_size", "page_token")
    NAME_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    name: str
    attempt: int
    page_size: int
    page_token: str
    def __init__(self, name: _Optional[str] = ..., attempt: _Optional[int] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListEpochsResponse(_message.Message):
    __slots__ = ("attempt", "epochs", "next_page_token")
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    EPOCHS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    attempt: int
    epochs: _containers.RepeatedCompositeFieldContainer[_epoch_report_pb2.EpochReport]
    next_page_token: str
    def __init__(self, attempt: _Optional[int] = ..., epochs: _Optional[_Iterable[_Union[_epoch_report_pb2.EpochReport, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class WatchJobRequest(_message.Message):
    __slots__ = ("name", "start_revision", "until_terminal")
    NAME_FIELD_NUMBER: _ClassVar[int]
    START_REVISION_FIELD_NUMBER: _ClassVar[int]
    UNTIL_TERMINAL_FIELD_NUMBER: _ClassVar[int]
    name: str
    start_revision: int
    until_terminal: bool
    def __init__(self, name: _Optional[str] = ..., start_revision: _Optional[int] = ..., until_terminal: bool = ...) -> None: ...

class WatchJobResponse(_message.Message):
    __slots__ = ("type", "revision", "job", "attempt", "epochs")
    TYPE_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    JOB_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    EPOCHS_FIELD_NUMBER: _ClassVar[int]
    type: WatchType
    revision: int
    job: _job_pb2.Job
    attempt: int
    epochs: _containers.RepeatedCompositeFieldContainer[_epoch_report_pb2.EpochReport]
    def __init__(self, type: _Optional[_Union[WatchType, str]] = ..., revision: _Optional[int] = ..., job: _Optional[_Union[_job_pb2.Job, _Mapping]] = ..., attempt: _Optional[int] = ..., epochs: _Optional[_Iterable[_Union[_epoch_report_pb2.EpochReport, _Mapping]]] = ...) -> None: ...

class StreamLogsRequest(_message.Message):
    __slots__ = ("name", "attempt", "role", "device", "tail_lines", "follow")
    NAME_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    ROLE_FIELD_NUMBER: _ClassVar[int]
    DEVICE_FIELD_NUMBER: _ClassVar[int]
    TAIL_LINES_FIELD_NUMBER: _ClassVar[int]
    FOLLOW_FIELD_NUMBER: _ClassVar[int]
    name: str
    attempt: int
    role: _executor_pb2.ExecutorRole
    device: str
    tail_lines: int
    follow: bool
    def __init__(self, name: _Optional[str] = ..., attempt: _Optional[int] = ..., role: _Optional[_Union[_executor_pb2.ExecutorRole, str]] = ..., device: _Optional[str] = ..., tail_lines: _Optional[int] = ..., follow: bool = ...) -> None: ...

class StreamLogsResponse(_message.Message):
    __slots__ = ("role", "device", "lines", "read_time", "log")
    ROLE_FIELD_NUMBER: _ClassVar[int]
    DEVICE_FIELD_NUMBER: _ClassVar[int]
    LINES_FIELD_NUMBER: _ClassVar[int]
    READ_TIME_FIELD_NUMBER: _ClassVar[int]
    LOG_FIELD_NUMBER: _ClassVar[int]
    role: _executor_pb2.ExecutorRole
    device: str
    lines: _containers.RepeatedScalarFieldContainer[str]
    read_time: _timestamp_pb2.Timestamp
    log: str
    def __init__(self, role: _Optional[_Union[_executor_pb2.ExecutorRole, str]] = ..., device: _Optional[str] = ..., lines: _Optional[_Iterable[str]] = ..., read_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., log: _Optional[str] = ...) -> None: ...

class GetJobPlanRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class GetJobTimelineRequest(_message.Message):
    __slots__ = ("name", "attempt")
    NAME_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    name: str
    attempt: int
    def __init__(self, name: _Optional[str] = ..., attempt: _Optional[int] = ...) -> None: ...
