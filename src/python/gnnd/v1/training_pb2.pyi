from gnnd.v1 import field_pb2 as _field_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class WeightDecayScope(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    WEIGHT_DECAY_SCOPE_UNSPECIFIED: _ClassVar[WeightDecayScope]
    WEIGHT_DECAY_SCOPE_ALL: _ClassVar[WeightDecayScope]
    WEIGHT_DECAY_SCOPE_FIRST_LAYER: _ClassVar[WeightDecayScope]

class OptimizerType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    OPTIMIZER_TYPE_UNSPECIFIED: _ClassVar[OptimizerType]
    OPTIMIZER_TYPE_ADAM: _ClassVar[OptimizerType]
    OPTIMIZER_TYPE_ADAMW: _ClassVar[OptimizerType]
    OPTIMIZER_TYPE_SGD: _ClassVar[OptimizerType]

class LrScheduleType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    LR_SCHEDULE_TYPE_UNSPECIFIED: _ClassVar[LrScheduleType]
    LR_SCHEDULE_TYPE_CONSTANT: _ClassVar[LrScheduleType]
    LR_SCHEDULE_TYPE_STEP: _ClassVar[LrScheduleType]
    LR_SCHEDULE_TYPE_COSINE: _ClassVar[LrScheduleType]

class Determinism(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    DETERMINISM_UNSPECIFIED: _ClassVar[Determinism]
    DETERMINISM_STRICT: _ClassVar[Determinism]
    DETERMINISM_RELAXED: _ClassVar[Determinism]

class Precision(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PRECISION_UNSPECIFIED: _ClassVar[Precision]
    PRECISION_FLOAT32: _ClassVar[Precision]
    PRECISION_BFLOAT16: _ClassVar[Precision]
    PRECISION_TF32: _ClassVar[Precision]

class MatrixLibrary(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    MATRIX_LIBRARY_UNSPECIFIED: _ClassVar[MatrixLibrary]
    MATRIX_LIBRARY_ONEDNN: _ClassVar[MatrixLibrary]
    MATRIX_LIBRARY_OPENBLAS: _ClassVar[MatrixLibrary]

class StalenessCompensation(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    STALENESS_COMPENSATION_UNSPECIFIED: _ClassVar[StalenessCompensation]
    STALENESS_COMPENSATION_PREDICT: _ClassVar[StalenessCompensation]
    STALENESS_COMPENSATION_NONE: _ClassVar[StalenessCompensation]
WEIGHT_DECAY_SCOPE_UNSPECIFIED: WeightDecayScope
WEIGHT_DECAY_SCOPE_ALL: WeightDecayScope
WEIGHT_DECAY_SCOPE_FIRST_LAYER: WeightDecayScope
OPTIMIZER_TYPE_UNSPECIFIED: OptimizerType
OPTIMIZER_TYPE_ADAM: OptimizerType
OPTIMIZER_TYPE_ADAMW: OptimizerType
OPTIMIZER_TYPE_SGD: OptimizerType
LR_SCHEDULE_TYPE_UNSPECIFIED: LrScheduleType
LR_SCHEDULE_TYPE_CONSTANT: LrScheduleType
LR_SCHEDULE_TYPE_STEP: LrScheduleType
LR_SCHEDULE_TYPE_COSINE: LrScheduleType
DETERMINISM_UNSPECIFIED: Determinism
DETERMINISM_STRICT: Determinism
DETERMINISM_RELAXED: Determinism
PRECISION_UNSPECIFIED: Precision
PRECISION_FLOAT32: Precision
PRECISION_BFLOAT16: Precision
PRECISION_TF32: Precision
MATRIX_LIBRARY_UNSPECIFIED: MatrixLibrary
MATRIX_LIBRARY_ONEDNN: MatrixLibrary
MATRIX_LIBRARY_OPENBLAS: MatrixLibrary
STALENESS_COMPENSATION_UNSPECIFIED: StalenessCompensation
STALENESS_COMPENSATION_PREDICT: StalenessCompensation
STALENESS_COMPENSATION_NONE: StalenessCompensation

class OptimizerSpec(_message.Message):
    __slots__ = ("learning_rate", "beta1", "beta2", "epsilon", "weight_decay", "weight_decay_scope", "type", "momentum", "clip_norm", "nesterov")
    LEARNING_RATE_FIELD_NUMBER: _ClassVar[int]
    BETA1_FIELD_NUMBER: _ClassVar[int]
    BETA2_FIELD_NUMBER: _ClassVar[int]
    EPSILON_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_DECAY_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_DECAY_SCOPE_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    MOMENTUM_FIELD_NUMBER: _ClassVar[int]
    CLIP_NORM_FIELD_NUMBER: _ClassVar[int]
    NESTEROV_FIELD_NUMBER: _ClassVar[int]
    learning_rate: float
    beta1: float
    beta2: float
    epsilon: float
    weight_decay: float
    weight_decay_scope: WeightDecayScope
    type: OptimizerType
    momentum: float
    clip_norm: float
    nesterov: bool
    def __init__(self, learning_rate: _Optional[float] = ..., beta1: _Optional[float] = ..., beta2: _Optional[float] = ..., epsilon: _Optional[float] = ..., weight_decay: _Optional[float] = ..., weight_decay_scope: _Optional[_Union[WeightDecayScope, str]] = ..., type: _Optional[_Union[OptimizerType, str]] = ..., momentum: _Optional[float] = ..., clip_norm: _Optional[float] = ..., nesterov: bool = ...) -> None: ...

class LrScheduleSpec(_message.Message):
    __slots__ = ("type", "step_epochs", "gamma", "warmup_epochs")
    TYPE_FIELD_NUMBER: _ClassVar[int]
    STEP_EPOCHS_FIELD_NUMBER: _ClassVar[int]
    GAMMA_FIELD_NUMBER: _ClassVar[int]
    WARMUP_EPOCHS_FIELD_NUMBER: _ClassVar[int]
    type: LrScheduleType
    step_epochs: int
    gamma: float
    warmup_epochs: int
    def __init__(self, type: _Optional[_Union[LrScheduleType, str]] = ..., step_epochs: _Optional[int] = ..., gamma: _Optional[float] = ..., warmup_epochs: _Optional[int] = ...) -> None: ...

class EarlyStopSpec(_message.Message):
    __slots__ = ("patience_epochs", "min_delta")
    PATIENCE_EPOCHS_FIELD_NUMBER: _ClassVar[int]
    MIN_DELTA_FIELD_NUMBER: _ClassVar[int]
    patience_epochs: int
    min_delta: float
    def __init__(self, patience_epochs: _Optional[int] = ..., min_delta: _Optional[float] = ...) -> None: ...

class TrainingSpec(_message.Message):
    __slots__ = ("epochs", "row_chunk", "batch_size", "batches_per_step", "staleness", "random_seed", "optimizer", "lr_schedule", "threads_per_trainer", "early_stop", "determinism", "staleness_compensation", "precision", "matrix_library", "start_from", "start_parameters_sha256", "class_weights", "balance_classes")
    EPOCHS_FIELD_NUMBER: _ClassVar[int]
    ROW_CHUNK_FIELD_NUMBER: _ClassVar[int]
    BATCH_SIZE_FIELD_NUMBER: _ClassVar[int]
    BATCHES_PER_STEP_FIELD_NUMBER: _ClassVar[int]
    STALENESS_FIELD_NUMBER: _ClassVar[int]
    RANDOM_SEED_FIELD_NUMBER: _ClassVar[int]
    OPTIMIZER_FIELD_NUMBER: _ClassVar[int]
    LR_SCHEDULE_FIELD_NUMBER: _ClassVar[int]
    THREADS_PER_TRAINER_FIELD_NUMBER: _ClassVar[int]
    EARLY_STOP_FIELD_NUMBER: _ClassVar[int]
    DETERMINISM_FIELD_NUMBER: _ClassVar[int]
    STALENESS_COMPENSATION_FIELD_NUMBER: _ClassVar[int]
    PRECISION_FIELD_NUMBER: _ClassVar[int]
    MATRIX_LIBRARY_FIELD_NUMBER: _ClassVar[int]
    START_FROM_FIELD_NUMBER: _ClassVar[int]
    START_PARAMETERS_SHA256_FIELD_NUMBER: _ClassVar[int]
    CLASS_WEIGHTS_FIELD_NUMBER: _ClassVar[int]
    BALANCE_CLASSES_FIELD_NUMBER: _ClassVar[int]
    epochs: int
    row_chunk: int
    batch_size: int
    batches_per_step: int
    staleness: int
    random_seed: int
    optimizer: OptimizerSpec
    lr_schedule: LrScheduleSpec
    threads_per_trainer: int
    early_stop: EarlyStopSpec
    determinism: Determinism
    staleness_compensation: StalenessCompensation
    precision: Precision
    matrix_library: MatrixLibrary
    start_from: str
    start_parameters_sha256: str
    class_weights: _containers.RepeatedScalarFieldContainer[float]
    balance_classes: bool
    def __init__(self, epochs: _Optional[int] = ..., row_chunk: _Optional[int] = ..., batch_size: _Optional[int] = ..., batches_per_step: _Optional[int] = ..., staleness: _Optional[int] = ..., random_seed: _Optional[int] = ..., optimizer: _Optional[_Union[OptimizerSpec, _Mapping]] = ..., lr_schedule: _Optional[_Union[LrScheduleSpec, _Mapping]] = ..., threads_per_trainer: _Optional[int] = ..., early_stop: _Optional[_Union[EarlyStopSpec, _Mapping]] = ..., determinism: _Optional[_Union[Determinism, str]] = ..., staleness_compensation: _Optional[_Union[StalenessCompensation, str]] = ..., precision: _Optional[_Union[Precision, str]] = ..., matrix_library: _Optional[_Union[MatrixLibrary, str]] = ..., start_from: _Optional[str] = ..., start_parameters_sha256: _Optional[str] = ..., class_weights: _Optional[_Iterable[float]] = ..., balance_classes: bool = ...) -> None: ...
