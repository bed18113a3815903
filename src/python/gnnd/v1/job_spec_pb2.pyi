from gnnd.v1 import evaluation_pb2 as _evaluation_pb2
from gnnd.v1 import features_pb2 as _features_pb2
from gnnd.v1 import field_pb2 as _field_pb2
from gnnd.v1 import history_pb2 as _history_pb2
from gnnd.v1 import inference_pb2 as _inference_pb2
from gnnd.v1 import model_pb2 as _model_pb2
from gnnd.v1 import propagation_pb2 as _propagation_pb2
from gnnd.v1 import resources_pb2 as _resources_pb2
from gnnd.v1 import sampling_pb2 as _sampling_pb2
from gnnd.v1 import training_pb2 as _training_pb2
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class JobSpec(_message.Message):
    __slots__ = ("kind", "inference", "dataset", "model", "sampling", "features", "propagation", "cache", "training", "history", "evaluation", "resources", "placement", "queue", "restart", "checkpoint", "timeouts", "priority", "preemptible")
    KIND_FIELD_NUMBER: _ClassVar[int]
    INFERENCE_FIELD_NUMBER: _ClassVar[int]
    DATASET_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    SAMPLING_FIELD_NUMBER: _ClassVar[int]
    FEATURES_FIELD_NUMBER: _ClassVar[int]
    PROPAGATION_FIELD_NUMBER: _ClassVar[int]
    CACHE_FIELD_NUMBER: _ClassVar[int]
    TRAINING_FIELD_NUMBER: _ClassVar[int]
    HISTORY_FIELD_NUMBER: _ClassVar[int]
    EVALUATION_FIELD_NUMBER: _ClassVar[int]
    RESOURCES_FIELD_NUMBER: _ClassVar[int]
    PLACEMENT_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    RESTART_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINT_FIELD_NUMBER: _ClassVar[int]
    TIMEOUTS_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    PREEMPTIBLE_FIELD_NUMBER: _ClassVar[int]
    kind: _inference_pb2.JobKind
    inference: _inference_pb2.InferenceSpec
    dataset: str
    model: _model_pb2.ModelSpec
    sampling: _sampling_pb2.SamplingSpec
    features: _features_pb2.FeaturesSpec
    propagation: _propagation_pb2.PropagationSpec
    cache: _features_pb2.CacheSpec
    training: _training_pb2.TrainingSpec
    history: _history_pb2.HistorySpec
    evaluation: _evaluation_pb2.EvaluationSpec
    resources: _resources_pb2.ResourcesSpec
    placement: _resources_pb2.PlacementSpec
    queue: _resources_pb2.QueueSpec
    restart: RestartSpec
    checkpoint: CheckpointSpec
    timeouts: TimeoutsSpec
    priority: int
    preemptible: bool
    def __init__(self, kind: _Optional[_Union[_inference_pb2.JobKind, str]] = ..., inference: _Optional[_Union[_inference_pb2.InferenceSpec, _Mapping]] = ..., dataset: _Optional[str] = ..., model: _Optional[_Union[_model_pb2.ModelSpec, _Mapping]] = ..., sampling: _Optional[_Union[_sampling_pb2.SamplingSpec, _Mapping]] = ..., features: _Optional[_Union[_features_pb2.FeaturesSpec, _Mapping]] = ..., propagation: _Optional[_Union[_propagation_pb2.PropagationSpec, _Mapping]] = ..., cache: _Optional[_Union[_features_pb2.CacheSpec, _Mapping]] = ..., training: _Optional[_Union[_training_pb2.TrainingSpec, _Mapping]] = ..., history: _Optional[_Union[_history_pb2.HistorySpec, _Mapping]] = ..., evaluation: _Optional[_Union[_evaluation_pb2.EvaluationSpec, _Mapping]] = ..., resources: _Optional[_Union[_resources_pb2.ResourcesSpec, _Mapping]] = ..., placement: _Optional[_Union[_resources_pb2.PlacementSpec, _Mapping]] = ..., queue: _Optional[_Union[_resources_pb2.QueueSpec, _Mapping]] = ..., restart: _Optional[_Union[RestartSpec, _Mapping]] = ..., checkpoint: _Optional[_Union[CheckpointSpec, _Mapping]] = ..., timeouts: _Optional[_Union[TimeoutsSpec, _Mapping]] = ..., priority: _Optional[int] = ..., preemptible: bool = ...) -> None: ...

class RestartSpec(_message.Message):
    __slots__ = ("max_attempts", "executor_restarts")
    MAX_ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    EXECUTOR_RESTARTS_FIELD_NUMBER: _ClassVar[int]
    max_attempts: int
    executor_restarts: int
    def __init__(self, max_attempts: _Optional[int] = ..., executor_restarts: _Optional[int] = ...) -> None: ...

class CheckpointSpec(_message.Message):
    __slots__ = ("every_epochs", "every_steps", "every_ms", "keep_last")
    EVERY_EPOCHS_FIELD_NUMBER: _ClassVar[int]
    EVERY_STEPS_FIELD_NUMBER: _ClassVar[int]
    EVERY_MS_FIELD_NUMBER: _ClassVar[int]
    KEEP_LAST_FIELD_NUMBER: _ClassVar[int]
    every_epochs: int
    every_steps: int
    every_ms: int
    keep_last: int
    def __init__(self, every_epochs: _Optional[int] = ..., every_steps: _Optional[int] = ..., every_ms: _Optional[int] = ..., keep_last: _Optional[int] = ...) -> None: ...

class TimeoutsSpec(_message.Message):
    __slots__ = ("pending_ms", "startup_ms", "stall_ms", "cancel_grace_ms", "run_ms")
    PENDING_MS_FIELD_NUMBER: _ClassVar[int]
    STARTUP_MS_FIELD_NUMBER: _ClassVar[int]
    STALL_MS_FIELD_NUMBER: _ClassVar[int]
    CANCEL_GRACE_MS_FIELD_NUMBER: _ClassVar[int]
    RUN_MS_FIELD_NUMBER: _ClassVar[int]
    pending_ms: int
    startup_ms: int
    stall_ms: int
    cancel_grace_ms: int
    run_ms: int
    def __init__(self, pending_ms: _Optional[int] = ..., startup_ms: _Optional[int] = ..., stall_ms: _Optional[int] = ..., cancel_grace_ms: _Optional[int] = ..., run_ms: _Optional[int] = ...) -> None: ...
