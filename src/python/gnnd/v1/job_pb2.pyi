import datetime

from gnnd.v1 import epoch_report_pb2 as _epoch_report_pb2
from gnnd.v1 import executor_pb2 as _executor_pb2
from gnnd.v1 import job_plan_pb2 as _job_plan_pb2
from gnnd.v1 import job_spec_pb2 as _job_spec_pb2
from gnnd.v1 import memory_plan_pb2 as _memory_plan_pb2
from gnnd.v1 import types_pb2 as _types_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class JobState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    JOB_STATE_UNSPECIFIED: _ClassVar[JobState]
    JOB_STATE_PENDING: _ClassVar[JobState]
    JOB_STATE_PREPARING: _ClassVar[JobState]
    JOB_STATE_RUNNING: _ClassVar[JobState]
    JOB_STATE_CANCELLING: _ClassVar[JobState]
    JOB_STATE_SUCCEEDED: _ClassVar[JobState]
    JOB_STATE_FAILED: _ClassVar[JobState]
    JOB_STATE_CANCELLED: _ClassVar[JobState]
    JOB_STATE_SUSPENDING: _ClassVar[JobState]
    JOB_STATE_SUSPENDED: _ClassVar[JobState]

class JobIntent(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    JOB_INTENT_UNSPECIFIED: _ClassVar[JobIntent]
    JOB_INTENT_RUN: _ClassVar[JobIntent]
    JOB_INTENT_CANCEL: _ClassVar[JobIntent]
    JOB_INTENT_SUSPEND: _ClassVar[JobIntent]

class JobPhase(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    JOB_PHASE_UNSPECIFIED: _ClassVar[JobPhase]
    JOB_PHASE_LOADING_DATASET: _ClassVar[JobPhase]
    JOB_PHASE_CALIBRATING: _ClassVar[JobPhase]
    JOB_PHASE_STARTING: _ClassVar[JobPhase]
    JOB_PHASE_TRAINING: _ClassVar[JobPhase]
    JOB_PHASE_EVALUATING: _ClassVar[JobPhase]
    JOB_PHASE_FINALIZING: _ClassVar[JobPhase]
    JOB_PHASE_PREDICTING: _ClassVar[JobPhase]

class EvaluationKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    EVALUATION_KIND_UNSPECIFIED: _ClassVar[EvaluationKind]
    EVALUATION_KIND_VALIDATION: _ClassVar[EvaluationKind]
    EVALUATION_KIND_TEST_LAST: _ClassVar[EvaluationKind]
    EVALUATION_KIND_TEST_BEST: _ClassVar[EvaluationKind]
    EVALUATION_KIND_PREDICTION: _ClassVar[EvaluationKind]
JOB_STATE_UNSPECIFIED: JobState
JOB_STATE_PENDING: JobState
JOB_STATE_PREPARING: JobState
JOB_STATE_RUNNING: JobState
JOB_STATE_CANCELLING: JobState
JOB_STATE_SUCCEEDED: JobState
JOB_STATE_FAILED: JobState
JOB_STATE_CANCELLED: JobState
JOB_STATE_SUSPENDING: JobState
JOB_STATE_SUSPENDED: JobState
JOB_INTENT_UNSPECIFIED: JobIntent
JOB_INTENT_RUN: JobIntent
JOB_INTENT_CANCEL: JobIntent
JOB_INTENT_SUSPEND: JobIntent
JOB_PHASE_UNSPECIFIED: JobPhase
JOB_PHASE_LOADING_DATASET: JobPhase
JOB_PHASE_CALIBRATING: JobPhase
JOB_PHASE_STARTING: JobPhase
JOB_PHASE_TRAINING: JobPhase
JOB_PHASE_EVALUATING: JobPhase
JOB_PHASE_FINALIZING: JobPhase
JOB_PHASE_PREDICTING: JobPhase
EVALUATION_KIND_UNSPECIFIED: EvaluationKind
EVALUATION_KIND_VALIDATION: EvaluationKind
EVALUATION_KIND_TEST_LAST: EvaluationKind
EVALUATION_KIND_TEST_BEST: EvaluationKind
EVALUATION_KIND_PREDICTION: EvaluationKind

class JobPace(_message.Message):
    __slots__ = ("way", "predicted_batch_ns", "predicted_epoch_ns", "measured")
    WAY_FIELD_NUMBER: _ClassVar[int]
    PREDICTED_BATCH_NS_FIELD_NUMBER: _ClassVar[int]
    PREDICTED_EPOCH_NS_FIELD_NUMBER: _ClassVar[int]
    MEASURED_FIELD_NUMBER: _ClassVar[int]
    way: _job_plan_pb2.PlanWay
    predicted_batch_ns: int
    predicted_epoch_ns: int
    measured: _job_plan_pb2.PlanMeasurement
    def __init__(self, way: _Optional[_Union[_job_plan_pb2.PlanWay, str]] = ..., predicted_batch_ns: _Optional[int] = ..., predicted_epoch_ns: _Optional[int] = ..., measured: _Optional[_Union[_job_plan_pb2.PlanMeasurement, _Mapping]] = ...) -> None: ...

class Job(_message.Message):
    __slots__ = ("name", "uid", "spec", "effective_spec", "state", "phase", "intent", "reason", "message", "progress", "attempts", "epochs", "result", "create_time", "start_time", "end_time", "revision", "dataset_digest", "warnings", "num_epochs", "pace", "memory", "device_kind_choice", "created_by", "batches_per_step_choice")
    NAME_FIELD_NUMBER: _ClassVar[int]
    UID_FIELD_NUMBER: _ClassVar[int]
    SPEC_FIELD_NUMBER: _ClassVar[int]
    EFFECTIVE_SPEC_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    PHASE_FIELD_NUMBER: _ClassVar[int]
    INTENT_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    EPOCHS_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    START_TIME_FIELD_NUMBER: _ClassVar[int]
    END_TIME_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    DATASET_DIGEST_FIELD_NUMBER: _ClassVar[int]
    WARNINGS_FIELD_NUMBER: _ClassVar[int]
    NUM_EPOCHS_FIELD_NUMBER: _ClassVar[int]
    PACE_FIELD_NUMBER: _ClassVar[int]
    MEMORY_FIELD_NUMBER: _ClassVar[int]
    DEVICE_KIND_CHOICE_FIELD_NUMBER: _ClassVar[int]
    CREATED_BY_FIELD_NUMBER: _ClassVar[int]
    BATCHES_PER_STEP_CHOICE_FIELD_NUMBER: _ClassVar[int]
    name: str
    uid: str
    spec: _job_spec_pb2.JobSpec
    effective_spec: _job_spec_pb2.JobSpec
    state: JobState
    phase: JobPhase
    intent: JobIntent
    reason: _types_pb2.Reason
    message: str
    progress: JobProgress
    attempts: _containers.RepeatedCompositeFieldContainer[Attempt]
    epochs: _containers.RepeatedCompositeFieldContainer[_epoch_report_pb2.EpochReport]
    result: JobResult
    create_time: _timestamp_pb2.Timestamp
    start_time: _timestamp_pb2.Timestamp
    end_time: _timestamp_pb2.Timestamp
    revision: int
    dataset_digest: str
    warnings: _containers.RepeatedScalarFieldContainer[str]
    num_epochs: int
    pace: JobPace
    memory: _memory_plan_pb2.MemoryPlan
    device_kind_choice: str
    created_by: str
    batches_per_step_choice: str
    def __init__(self, name: _Optional[str] = ..., uid: _Optional[str] = ..., spec: _Optional[_Union[_job_spec_pb2.JobSpec, _Mapping]] = ..., effective_spec: _Optional[_Union[_job_spec_pb2.JobSpec, _Mapping]] = ..., state: _Optional[_Union[JobState, str]] = ..., phase: _Optional[_Union[JobPhase, str]] = ..., intent: _Optional[_Union[JobIntent, str]] = ..., reason: _Optional[_Union[_types_pb2.Reason, str]] = ..., message: _Optional[str] = ..., progress: _Optional[_Union[JobProgress, _Mapping]] = ..., attempts: _Optional[_Iterable[_Union[Attempt, _Mapping]]] = ..., epochs: _Optional[_Iterable[_Union[_epoch_report_pb2.EpochReport, _Mapping]]] = ..., result: _Optional[_Union[JobResult, _Mapping]] = ..., create_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., start_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., end_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., revision: _Optional[int] = ..., dataset_digest: _Optional[str] = ..., warnings: _Optional[_Iterable[str]] = ..., num_epochs: _Optional[int] = ..., pace: _Optional[_Union[JobPace, _Mapping]] = ..., memory: _Optional[_Union[_memory_plan_pb2.MemoryPlan, _Mapping]] = ..., device_kind_choice: _Optional[str] = ..., created_by: _Optional[str] = ..., batches_per_step_choice: _Optional[str] = ...) -> None: ...

class JobProgress(_message.Message):
    __slots__ = ("epoch", "epochs", "batches_committed", "batches_per_epoch", "version", "loss", "val_accuracy", "seeds_per_second", "edges_per_second", "remaining_ms", "queue_depth", "queue_capacity", "executors", "evaluation", "val_metrics")
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    EPOCHS_FIELD_NUMBER: _ClassVar[int]
    BATCHES_COMMITTED_FIELD_NUMBER: _ClassVar[int]
    BATCHES_PER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    LOSS_FIELD_NUMBER: _ClassVar[int]
    VAL_ACCURACY_FIELD_NUMBER: _ClassVar[int]
    SEEDS_PER_SECOND_FIELD_NUMBER: _ClassVar[int]
    EDGES_PER_SECOND_FIELD_NUMBER: _ClassVar[int]
    REMAINING_MS_FIELD_NUMBER: _ClassVar[int]
    QUEUE_DEPTH_FIELD_NUMBER: _ClassVar[int]
    QUEUE_CAPACITY_FIELD_NUMBER: _ClassVar[int]
    EXECUTORS_FIELD_NUMBER: _ClassVar[int]
    EVALUATION_FIELD_NUMBER: _ClassVar[int]
    VAL_METRICS_FIELD_NUMBER: _ClassVar[int]
    epoch: int
    epochs: int
    batches_committed: int
    batches_per_epoch: int
    version: int
    loss: float
    val_accuracy: float
    seeds_per_second: float
    edges_per_second: float
    remaining_ms: int
    queue_depth: int
    queue_capacity: int
    executors: _containers.RepeatedCompositeFieldContainer[_executor_pb2.ExecutorStatus]
    evaluation: EvaluationProgress
    val_metrics: _containers.RepeatedCompositeFieldContainer[_epoch_report_pb2.Metric]
    def __init__(self, epoch: _Optional[int] = ..., epochs: _Optional[int] = ..., batches_committed: _Optional[int] = ..., batches_per_epoch: _Optional[int] = ..., version: _Optional[int] = ..., loss: _Optional[float] = ..., val_accuracy: _Optional[float] = ..., seeds_per_second: _Optional[float] = ..., edges_per_second: _Optional[float] = ..., remaining_ms: _Optional[int] = ..., queue_depth: _Optional[int] = ..., queue_capacity: _Optional[int] = ..., executors: _Optional[_Iterable[_Union[_executor_pb2.ExecutorStatus, _Mapping]]] = ..., evaluation: _Optional[_Union[EvaluationProgress, _Mapping]] = ..., val_metrics: _Optional[_Iterable[_Union[_epoch_report_pb2.Metric, _Mapping]]] = ...) -> None: ...

class EvaluationProgress(_message.Message):
    __slots__ = ("kind", "epoch", "rows_done", "rows_total", "remaining_ms")
    KIND_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    ROWS_DONE_FIELD_NUMBER: _ClassVar[int]
    ROWS_TOTAL_FIELD_NUMBER: _ClassVar[int]
    REMAINING_MS_FIELD_NUMBER: _ClassVar[int]
    kind: EvaluationKind
    epoch: int
    rows_done: int
    rows_total: int
    remaining_ms: int
    def __init__(self, kind: _Optional[_Union[EvaluationKind, str]] = ..., epoch: _Optional[int] = ..., rows_done: _Optional[int] = ..., rows_total: _Optional[int] = ..., remaining_ms: _Optional[int] = ...) -> None: ...

class Attempt(_message.Message):
    __slots__ = ("number", "start_time", "end_time", "end_reason", "message", "executor_restarts", "exits", "resumed")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    START_TIME_FIELD_NUMBER: _ClassVar[int]
    END_TIME_FIELD_NUMBER: _ClassVar[int]
    END_REASON_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    EXECUTOR_RESTARTS_FIELD_NUMBER: _ClassVar[int]
    EXITS_FIELD_NUMBER: _ClassVar[int]
    RESUMED_FIELD_NUMBER: _ClassVar[int]
    number: int
    start_time: _timestamp_pb2.Timestamp
    end_time: _timestamp_pb2.Timestamp
    end_reason: _types_pb2.Reason
    message: str
    executor_restarts: int
    exits: _containers.RepeatedCompositeFieldContainer[_executor_pb2.ExecutorExit]
    resumed: ResumePoint
    def __init__(self, number: _Optional[int] = ..., start_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., end_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., end_reason: _Optional[_Union[_types_pb2.Reason, str]] = ..., message: _Optional[str] = ..., executor_restarts: _Optional[int] = ..., exits: _Optional[_Iterable[_Union[_executor_pb2.ExecutorExit, _Mapping]]] = ..., resumed: _Optional[_Union[ResumePoint, _Mapping]] = ...) -> None: ...

class ResumePoint(_message.Message):
    __slots__ = ("epochs", "batches", "image", "other_build")
    EPOCHS_FIELD_NUMBER: _ClassVar[int]
    BATCHES_FIELD_NUMBER: _ClassVar[int]
    IMAGE_FIELD_NUMBER: _ClassVar[int]
    OTHER_BUILD_FIELD_NUMBER: _ClassVar[int]
    epochs: int
    batches: int
    image: str
    other_build: bool
    def __init__(self, epochs: _Optional[int] = ..., batches: _Optional[int] = ..., image: _Optional[str] = ..., other_build: bool = ...) -> None: ...

class JobResult(_message.Message):
    __slots__ = ("parameters_sha256", "checkpoint_dir", "test_accuracy_last", "test_accuracy_best", "best_epoch", "best_val_accuracy", "epochs", "predictions", "test_metrics_last", "test_metrics_best", "best_val_metrics")
    PARAMETERS_SHA256_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINT_DIR_FIELD_NUMBER: _ClassVar[int]
    TEST_ACCURACY_LAST_FIELD_NUMBER: _ClassVar[int]
    TEST_ACCURACY_BEST_FIELD_NUMBER: _ClassVar[int]
    BEST_EPOCH_FIELD_NUMBER: _ClassVar[int]
    BEST_VAL_ACCURACY_FIELD_NUMBER: _ClassVar[int]
    EPOCHS_FIELD_NUMBER: _ClassVar[int]
    PREDICTIONS_FIELD_NUMBER: _ClassVar[int]
    TEST_METRICS_LAST_FIELD_NUMBER: _ClassVar[int]
    TEST_METRICS_BEST_FIELD_NUMBER: _ClassVar[int]
    BEST_VAL_METRICS_FIELD_NUMBER: _ClassVar[int]
    parameters_sha256: str
    checkpoint_dir: str
    test_accuracy_last: float
    test_accuracy_best: float
    best_epoch: int
    best_val_accuracy: float
    epochs: int
    predictions: JobPredictions
    test_metrics_last: _containers.RepeatedCompositeFieldContainer[_epoch_report_pb2.Metric]
    test_metrics_best: _containers.RepeatedCompositeFieldContainer[_epoch_report_pb2.Metric]
    best_val_metrics: _containers.RepeatedCompositeFieldContainer[_epoch_report_pb2.Metric]
    def __init__(self, parameters_sha256: _Optional[str] = ..., checkpoint_dir: _Optional[str] = ..., test_accuracy_last: _Optional[float] = ..., test_accuracy_best: _Optional[float] = ..., best_epoch: _Optional[int] = ..., best_val_accuracy: _Optional[float] = ..., epochs: _Optional[int] = ..., predictions: _Optional[_Union[JobPredictions, _Mapping]] = ..., test_metrics_last: _Optional[_Iterable[_Union[_epoch_report_pb2.Metric, _Mapping]]] = ..., test_metrics_best: _Optional[_Iterable[_Union[_epoch_report_pb2.Metric, _Mapping]]] = ..., best_val_metrics: _Optional[_Iterable[_Union[_epoch_report_pb2.Metric, _Mapping]]] = ...) -> None: ...

class JobPredictions(_message.Message):
    __slots__ = ("folder", "nodes", "bytes", "sha256")
    FOLDER_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    SHA256_FIELD_NUMBER: _ClassVar[int]
    folder: str
    nodes: int
    bytes: int
    sha256: str
    def __init__(self, folder: _Optional[str] = ..., nodes: _Optional[int] = ..., bytes: _Optional[int] = ..., sha256: _Optional[str] = ...) -> None: ...
