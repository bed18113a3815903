from gnnd.v1 import executor_pb2 as _executor_pb2
from gnnd.v1 import features_pb2 as _features_pb2
from gnnd.v1 import memory_plan_pb2 as _memory_plan_pb2
from gnnd.v1 import resources_pb2 as _resources_pb2
from gnnd.v1 import training_pb2 as _training_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class PlanWay(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PLAN_WAY_UNSPECIFIED: _ClassVar[PlanWay]
    PLAN_WAY_SPLIT: _ClassVar[PlanWay]
    PLAN_WAY_SWITCHING: _ClassVar[PlanWay]
    PLAN_WAY_SHARING: _ClassVar[PlanWay]

class PlanLimit(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PLAN_LIMIT_UNSPECIFIED: _ClassVar[PlanLimit]
    PLAN_LIMIT_SAMPLING: _ClassVar[PlanLimit]
    PLAN_LIMIT_TRAINING: _ClassVar[PlanLimit]
    PLAN_LIMIT_STEPS: _ClassVar[PlanLimit]
PLAN_WAY_UNSPECIFIED: PlanWay
PLAN_WAY_SPLIT: PlanWay
PLAN_WAY_SWITCHING: PlanWay
PLAN_WAY_SHARING: PlanWay
PLAN_LIMIT_UNSPECIFIED: PlanLimit
PLAN_LIMIT_SAMPLING: PlanLimit
PLAN_LIMIT_TRAINING: PlanLimit
PLAN_LIMIT_STEPS: PlanLimit

class JobPlan(_message.Message):
    __slots__ = ("job", "estimated", "executors", "sampler_batch_ns", "trainer_batch_ns", "standby_batch_ns", "k", "choices", "policy", "standby", "time_sharing_batch_ns", "explanation", "queue_capacity", "slot_bytes", "parameter_count", "cache", "staleness", "warnings", "staleness_compensation", "way", "ways", "batches_per_step", "measurement", "rows", "device_kind_choice", "batches_per_step_choice")
    JOB_FIELD_NUMBER: _ClassVar[int]
    ESTIMATED_FIELD_NUMBER: _ClassVar[int]
    EXECUTORS_FIELD_NUMBER: _ClassVar[int]
    SAMPLER_BATCH_NS_FIELD_NUMBER: _ClassVar[int]
    TRAINER_BATCH_NS_FIELD_NUMBER: _ClassVar[int]
    STANDBY_BATCH_NS_FIELD_NUMBER: _ClassVar[int]
    K_FIELD_NUMBER: _ClassVar[int]
    CHOICES_FIELD_NUMBER: _ClassVar[int]
    POLICY_FIELD_NUMBER: _ClassVar[int]
    STANDBY_FIELD_NUMBER: _ClassVar[int]
    TIME_SHARING_BATCH_NS_FIELD_NUMBER: _ClassVar[int]
    EXPLANATION_FIELD_NUMBER: _ClassVar[int]
    QUEUE_CAPACITY_FIELD_NUMBER: _ClassVar[int]
    SLOT_BYTES_FIELD_NUMBER: _ClassVar[int]
    PARAMETER_COUNT_FIELD_NUMBER: _ClassVar[int]
    CACHE_FIELD_NUMBER: _ClassVar[int]
    STALENESS_FIELD_NUMBER: _ClassVar[int]
    WARNINGS_FIELD_NUMBER: _ClassVar[int]
    STALENESS_COMPENSATION_FIELD_NUMBER: _ClassVar[int]
    WAY_FIELD_NUMBER: _ClassVar[int]
    WAYS_FIELD_NUMBER: _ClassVar[int]
    BATCHES_PER_STEP_FIELD_NUMBER: _ClassVar[int]
    MEASUREMENT_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    DEVICE_KIND_CHOICE_FIELD_NUMBER: _ClassVar[int]
    BATCHES_PER_STEP_CHOICE_FIELD_NUMBER: _ClassVar[int]
    job: str
    estimated: bool
    executors: _containers.RepeatedCompositeFieldContainer[PlannedExecutor]
    sampler_batch_ns: int
    trainer_batch_ns: int
    standby_batch_ns: int
    k: float
    choices: _containers.RepeatedCompositeFieldContainer[PolicyChoice]
    policy: _resources_pb2.PlacementPolicy
    standby: _resources_pb2.StandbyPolicy
    time_sharing_batch_ns: int
    explanation: str
    queue_capacity: int
    slot_bytes: int
    parameter_count: int
    cache: CachePlan
    staleness: int
    warnings: _containers.RepeatedScalarFieldContainer[str]
    staleness_compensation: _training_pb2.StalenessCompensation
    way: PlanWay
    ways: _containers.RepeatedCompositeFieldContainer[PlannedWay]
    batches_per_step: int
    measurement: PlanMeasurement
    rows: _memory_plan_pb2.RowPlan
    device_kind_choice: str
    batches_per_step_choice: str
    def __init__(self, job: _Optional[str] = ..., estimated: bool = ..., executors: _Optional[_Iterable[_Union[PlannedExecutor, _Mapping]]] = ..., sampler_batch_ns: _Optional[int] = ..., trainer_batch_ns: _Optional[int] = ..., standby_batch_ns: _Optional[int] = ..., k: _Optional[float] = ..., choices: _Optional[_Iterable[_Union[PolicyChoice, _Mapping]]] = ..., policy: _Optional[_Union[_resources_pb2.PlacementPolicy, str]] = ..., standby: _Optional[_Union[_resources_pb2.StandbyPolicy, str]] = ..., time_sharing_batch_ns: _Optional[int] = ..., explanation: _Optional[str] = ..., queue_capacity: _Optional[int] = ..., slot_bytes: _Optional[int] = ..., parameter_count: _Optional[int] = ..., cache: _Optional[_Union[CachePlan, _Mapping]] = ..., staleness: _Optional[int] = ..., warnings: _Optional[_Iterable[str]] = ..., staleness_compensation: _Optional[_Union[_training_pb2.StalenessCompensation, str]] = ..., way: _Optional[_Union[PlanWay, str]] = ..., ways: _Optional[_Iterable[_Union[PlannedWay, _Mapping]]] = ..., batches_per_step: _Optional[int] = ..., measurement: _Optional[_Union[PlanMeasurement, _Mapping]] = ..., rows: _Optional[_Union[_memory_plan_pb2.RowPlan, _Mapping]] = ..., device_kind_choice: _Optional[str] = ..., batches_per_step_choice: _Optional[str] = ...) -> None: ...

class PlannedWay(_message.Message):
    __slots__ = ("way", "samplers", "trainers", "batch_ns", "epoch_ns", "limit", "batches_at_once")
    WAY_FIELD_NUMBER: _ClassVar[int]
    SAMPLERS_FIELD_NUMBER: _ClassVar[int]
    TRAINERS_FIELD_NUMBER: _ClassVar[int]
    BATCH_NS_FIELD_NUMBER: _ClassVar[int]
    EPOCH_NS_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    BATCHES_AT_ONCE_FIELD_NUMBER: _ClassVar[int]
    way: PlanWay
    samplers: int
    trainers: int
    batch_ns: int
    epoch_ns: int
    limit: PlanLimit
    batches_at_once: int
    def __init__(self, way: _Optional[_Union[PlanWay, str]] = ..., samplers: _Optional[int] = ..., trainers: _Optional[int] = ..., batch_ns: _Optional[int] = ..., epoch_ns: _Optional[int] = ..., limit: _Optional[_Union[PlanLimit, str]] = ..., batches_at_once: _Optional[int] = ...) -> None: ...

class PlanMeasurement(_message.Message):
    __slots__ = ("epochs", "epoch_ns", "batch_ns", "sampler_batch_ns", "trainer_batch_ns", "standby_batch_ns")
    EPOCHS_FIELD_NUMBER: _ClassVar[int]
    EPOCH_NS_FIELD_NUMBER: _ClassVar[int]
    BATCH_NS_FIELD_NUMBER: _ClassVar[int]
    SAMPLER_BATCH_NS_FIELD_NUMBER: _ClassVar[int]
    TRAINER_BATCH_NS_FIELD_NUMBER: _ClassVar[int]
    STANDBY_BATCH_NS_FIELD_NUMBER: _ClassVar[int]
    epochs: int
    epoch_ns: int
    batch_ns: int
    sampler_batch_ns: int
    trainer_batch_ns: int
    standby_batch_ns: int
    def __init__(self, epochs: _Optional[int] = ..., epoch_ns: _Optional[int] = ..., batch_ns: _Optional[int] = ..., sampler_batch_ns: _Optional[int] = ..., trainer_batch_ns: _Optional[int] = ..., standby_batch_ns: _Optional[int] = ...) -> None: ...

class CachePlan(_message.Message):
    __slots__ = ("policy", "trainer_rows", "standby_rows", "row_bytes", "rank_ms", "explanation", "prefetch", "prefetch_explanation", "pinned_rows", "pinned_explanation", "placement", "favoured", "reserved_bytes")
    POLICY_FIELD_NUMBER: _ClassVar[int]
    TRAINER_ROWS_FIELD_NUMBER: _ClassVar[int]
    STANDBY_ROWS_FIELD_NUMBER: _ClassVar[int]
    ROW_BYTES_FIELD_NUMBER: _ClassVar[int]
    RANK_MS_FIELD_NUMBER: _ClassVar[int]
    EXPLANATION_FIELD_NUMBER: _ClassVar[int]
    PREFETCH_FIELD_NUMBER: _ClassVar[int]
    PREFETCH_EXPLANATION_FIELD_NUMBER: _ClassVar[int]
    PINNED_ROWS_FIELD_NUMBER: _ClassVar[int]
    PINNED_EXPLANATION_FIELD_NUMBER: _ClassVar[int]
    PLACEMENT_FIELD_NUMBER: _ClassVar[int]
    FAVOURED_FIELD_NUMBER: _ClassVar[int]
    RESERVED_BYTES_FIELD_NUMBER: _ClassVar[int]
    policy: _features_pb2.CachePolicy
    trainer_rows: int
    standby_rows: int
    row_bytes: int
    rank_ms: int
    explanation: str
    prefetch: bool
    prefetch_explanation: str
    pinned_rows: int
    pinned_explanation: str
    placement: RowPlacement
    favoured: str
    reserved_bytes: int
    def __init__(self, policy: _Optional[_Union[_features_pb2.CachePolicy, str]] = ..., trainer_rows: _Optional[int] = ..., standby_rows: _Optional[int] = ..., row_bytes: _Optional[int] = ..., rank_ms: _Optional[int] = ..., explanation: _Optional[str] = ..., prefetch: bool = ..., prefetch_explanation: _Optional[str] = ..., pinned_rows: _Optional[int] = ..., pinned_explanation: _Optional[str] = ..., placement: _Optional[_Union[RowPlacement, _Mapping]] = ..., favoured: _Optional[str] = ..., reserved_bytes: _Optional[int] = ...) -> None: ...

class RowPlacement(_message.Message):
    __slots__ = ("explanation", "devices")
    EXPLANATION_FIELD_NUMBER: _ClassVar[int]
    DEVICES_FIELD_NUMBER: _ClassVar[int]
    explanation: str
    devices: _containers.RepeatedCompositeFieldContainer[PlacedDevice]
    def __init__(self, explanation: _Optional[str] = ..., devices: _Optional[_Iterable[_Union[PlacedDevice, _Mapping]]] = ...) -> None: ...

class PlacedDevice(_message.Message):
    __slots__ = ("device", "copied_rows", "dealt_rows", "expected", "measured")
    DEVICE_FIELD_NUMBER: _ClassVar[int]
    COPIED_ROWS_FIELD_NUMBER: _ClassVar[int]
    DEALT_ROWS_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_FIELD_NUMBER: _ClassVar[int]
    MEASURED_FIELD_NUMBER: _ClassVar[int]
    device: str
    copied_rows: int
    dealt_rows: int
    expected: RowShares
    measured: RowShares
    def __init__(self, device: _Optional[str] = ..., copied_rows: _Optional[int] = ..., dealt_rows: _Optional[int] = ..., expected: _Optional[_Union[RowShares, _Mapping]] = ..., measured: _Optional[_Union[RowShares, _Mapping]] = ...) -> None: ...

class RowShares(_message.Message):
    __slots__ = ("own", "peer", "host", "wait_ns")
    OWN_FIELD_NUMBER: _ClassVar[int]
    PEER_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    WAIT_NS_FIELD_NUMBER: _ClassVar[int]
    own: float
    peer: float
    host: float
    wait_ns: int
    def __init__(self, own: _Optional[float] = ..., peer: _Optional[float] = ..., host: _Optional[float] = ..., wait_ns: _Optional[int] = ...) -> None: ...

class PlannedExecutor(_message.Message):
    __slots__ = ("role", "device")
    ROLE_FIELD_NUMBER: _ClassVar[int]
    DEVICE_FIELD_NUMBER: _ClassVar[int]
    role: _executor_pb2.ExecutorRole
    device: str
    def __init__(self, role: _Optional[_Union[_executor_pb2.ExecutorRole, str]] = ..., device: _Optional[str] = ...) -> None: ...

class PolicyChoice(_message.Message):
    __slots__ = ("policy", "samplers", "trainers", "batch_ns")
    POLICY_FIELD_NUMBER: _ClassVar[int]
    SAMPLERS_FIELD_NUMBER: _ClassVar[int]
    TRAINERS_FIELD_NUMBER: _ClassVar[int]
    BATCH_NS_FIELD_NUMBER: _ClassVar[int]
    policy: _resources_pb2.PlacementPolicy
    samplers: int
    trainers: int
    batch_ns: int
    def __init__(self, policy: _Optional[_Union[_resources_pb2.PlacementPolicy, str]] = ..., samplers: _Optional[int] = ..., trainers: _Optional[int] = ..., batch_ns: _Optional[int] = ...) -> None: ...
