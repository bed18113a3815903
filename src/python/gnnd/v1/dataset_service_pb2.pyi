import datetime

from gnnd.v1 import features_pb2 as _features_pb2
from gnnd.v1 import placement_pb2 as _placement_pb2
from gnnd.v1 import propagation_pb2 as _propagation_pb2
from gnnd.v1 import sampling_pb2 as _sampling_pb2
from gnnd.v1 import types_pb2 as _types_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ImportFormat(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    IMPORT_FORMAT_UNSPECIFIED: _ClassVar[ImportFormat]
    IMPORT_FORMAT_NPY: _ClassVar[ImportFormat]
    IMPORT_FORMAT_NPZ: _ClassVar[ImportFormat]
    IMPORT_FORMAT_CSV: _ClassVar[ImportFormat]
    IMPORT_FORMAT_PARQUET: _ClassVar[ImportFormat]
    IMPORT_FORMAT_OGB: _ClassVar[ImportFormat]
    IMPORT_FORMAT_GRAPHBOLT: _ClassVar[ImportFormat]
    IMPORT_FORMAT_EDGE_LIST: _ClassVar[ImportFormat]
    IMPORT_FORMAT_PYG: _ClassVar[ImportFormat]
    IMPORT_FORMAT_DGL: _ClassVar[ImportFormat]
    IMPORT_FORMAT_PLANETOID: _ClassVar[ImportFormat]
    IMPORT_FORMAT_GRAPHSAINT: _ClassVar[ImportFormat]
    IMPORT_FORMAT_GRAPHSAGE: _ClassVar[ImportFormat]
    IMPORT_FORMAT_NETWORKX: _ClassVar[ImportFormat]
    IMPORT_FORMAT_BENCHMARK_NPZ: _ClassVar[ImportFormat]

class MadeFeatures(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    MADE_FEATURES_UNSPECIFIED: _ClassVar[MadeFeatures]
    MADE_FEATURES_DEGREE: _ClassVar[MadeFeatures]
    MADE_FEATURES_IDENTITY: _ClassVar[MadeFeatures]

class FeatureDtype(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    FEATURE_DTYPE_UNSPECIFIED: _ClassVar[FeatureDtype]
    FEATURE_DTYPE_FLOAT32: _ClassVar[FeatureDtype]
    FEATURE_DTYPE_FLOAT16: _ClassVar[FeatureDtype]

class DatasetState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    DATASET_STATE_UNSPECIFIED: _ClassVar[DatasetState]
    DATASET_STATE_IMPORTING: _ClassVar[DatasetState]
    DATASET_STATE_READY: _ClassVar[DatasetState]
    DATASET_STATE_FAILED: _ClassVar[DatasetState]
IMPORT_FORMAT_UNSPECIFIED: ImportFormat
IMPORT_FORMAT_NPY: ImportFormat
IMPORT_FORMAT_NPZ: ImportFormat
IMPORT_FORMAT_CSV: ImportFormat
IMPORT_FORMAT_PARQUET: ImportFormat
IMPORT_FORMAT_OGB: ImportFormat
IMPORT_FORMAT_GRAPHBOLT: ImportFormat
IMPORT_FORMAT_EDGE_LIST: ImportFormat
IMPORT_FORMAT_PYG: ImportFormat
IMPORT_FORMAT_DGL: ImportFormat
IMPORT_FORMAT_PLANETOID: ImportFormat
IMPORT_FORMAT_GRAPHSAINT: ImportFormat
IMPORT_FORMAT_GRAPHSAGE: ImportFormat
IMPORT_FORMAT_NETWORKX: ImportFormat
IMPORT_FORMAT_BENCHMARK_NPZ: ImportFormat
MADE_FEATURES_UNSPECIFIED: MadeFeatures
MADE_FEATURES_DEGREE: MadeFeatures
MADE_FEATURES_IDENTITY: MadeFeatures
FEATURE_DTYPE_UNSPECIFIED: FeatureDtype
FEATURE_DTYPE_FLOAT32: FeatureDtype
FEATURE_DTYPE_FLOAT16: FeatureDtype
DATASET_STATE_UNSPECIFIED: DatasetState
DATASET_STATE_IMPORTING: DatasetState
DATASET_STATE_READY: DatasetState
DATASET_STATE_FAILED: DatasetState

class RandomSplit(_message.Message):
    __slots__ = ("validation", "test", "random_seed")
    VALIDATION_FIELD_NUMBER: _ClassVar[int]
    TEST_FIELD_NUMBER: _ClassVar[int]
    RANDOM_SEED_FIELD_NUMBER: _ClassVar[int]
    validation: float
    test: float
    random_seed: int
    def __init__(self, validation: _Optional[float] = ..., test: _Optional[float] = ..., random_seed: _Optional[int] = ...) -> None: ...

class ImportDatasetRequest(_message.Message):
    __slots__ = ("dataset_id", "source", "format", "validate_only", "request_id", "feature_dtype", "directed", "link", "task", "split", "ignored_columns", "made_features", "random_split")
    DATASET_ID_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    FORMAT_FIELD_NUMBER: _ClassVar[int]
    VALIDATE_ONLY_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    FEATURE_DTYPE_FIELD_NUMBER: _ClassVar[int]
    DIRECTED_FIELD_NUMBER: _ClassVar[int]
    LINK_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    SPLIT_FIELD_NUMBER: _ClassVar[int]
    IGNORED_COLUMNS_FIELD_NUMBER: _ClassVar[int]
    MADE_FEATURES_FIELD_NUMBER: _ClassVar[int]
    RANDOM_SPLIT_FIELD_NUMBER: _ClassVar[int]
    dataset_id: str
    source: str
    format: ImportFormat
    validate_only: bool
    request_id: str
    feature_dtype: FeatureDtype
    directed: bool
    link: bool
    task: _types_pb2.DatasetTask
    split: str
    ignored_columns: _containers.RepeatedScalarFieldContainer[str]
    made_features: MadeFeatures
    random_split: RandomSplit
    def __init__(self, dataset_id: _Optional[str] = ..., source: _Optional[str] = ..., format: _Optional[_Union[ImportFormat, str]] = ..., validate_only: bool = ..., request_id: _Optional[str] = ..., feature_dtype: _Optional[_Union[FeatureDtype, str]] = ..., directed: bool = ..., link: bool = ..., task: _Optional[_Union[_types_pb2.DatasetTask, str]] = ..., split: _Optional[str] = ..., ignored_columns: _Optional[_Iterable[str]] = ..., made_features: _Optional[_Union[MadeFeatures, str]] = ..., random_split: _Optional[_Union[RandomSplit, _Mapping]] = ...) -> None: ...

class Dataset(_message.Message):
    __slots__ = ("name", "state", "message", "digest", "num_nodes", "num_edges", "num_features", "num_classes", "num_train", "num_val", "num_test", "bytes", "path", "create_time", "feature_dtype", "task")
    NAME_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    NUM_NODES_FIELD_NUMBER: _ClassVar[int]
    NUM_EDGES_FIELD_NUMBER: _ClassVar[int]
    NUM_FEATURES_FIELD_NUMBER: _ClassVar[int]
    NUM_CLASSES_FIELD_NUMBER: _ClassVar[int]
    NUM_TRAIN_FIELD_NUMBER: _ClassVar[int]
    NUM_VAL_FIELD_NUMBER: _ClassVar[int]
    NUM_TEST_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    FEATURE_DTYPE_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    name: str
    state: DatasetState
    message: str
    digest: str
    num_nodes: int
    num_edges: int
    num_features: int
    num_classes: int
    num_train: int
    num_val: int
    num_test: int
    bytes: int
    path: str
    create_time: _timestamp_pb2.Timestamp
    feature_dtype: FeatureDtype
    task: _types_pb2.DatasetTask
    def __init__(self, name: _Optional[str] = ..., state: _Optional[_Union[DatasetState, str]] = ..., message: _Optional[str] = ..., digest: _Optional[str] = ..., num_nodes: _Optional[int] = ..., num_edges: _Optional[int] = ..., num_features: _Optional[int] = ..., num_classes: _Optional[int] = ..., num_train: _Optional[int] = ..., num_val: _Optional[int] = ..., num_test: _Optional[int] = ..., bytes: _Optional[int] = ..., path: _Optional[str] = ..., create_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., feature_dtype: _Optional[_Union[FeatureDtype, str]] = ..., task: _Optional[_Union[_types_pb2.DatasetTask, str]] = ...) -> None: ...

class GetDatasetRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class ListDatasetsRequest(_message.Message):
    __slots__ = ("page_size", "page_token")
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListDatasetsResponse(_message.Message):
    __slots__ = ("datasets", "next_page_token")
    DATASETS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    datasets: _containers.RepeatedCompositeFieldContainer[Dataset]
    next_page_token: str
    def __init__(self, datasets: _Optional[_Iterable[_Union[Dataset, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class ValidateDatasetRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class DeleteDatasetRequest(_message.Message):
    __slots__ = ("name", "allow_missing", "request_id")
    NAME_FIELD_NUMBER: _ClassVar[int]
    ALLOW_MISSING_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    name: str
    allow_missing: bool
    request_id: str
    def __init__(self, name: _Optional[str] = ..., allow_missing: bool = ..., request_id: _Optional[str] = ...) -> None: ...

class DeleteDatasetResponse(_message.Message):
    __slots__ = ("bytes",)
    BYTES_FIELD_NUMBER: _ClassVar[int]
    bytes: int
    def __init__(self, bytes: _Optional[int] = ...) -> None: ...

class DatasetValidation(_message.Message):
    __slots__ = ("valid", "problems", "problem_count")
    VALID_FIELD_NUMBER: _ClassVar[int]
    PROBLEMS_FIELD_NUMBER: _ClassVar[int]
    PROBLEM_COUNT_FIELD_NUMBER: _ClassVar[int]
    valid: bool
    problems: _containers.RepeatedCompositeFieldContainer[_types_pb2.Problem]
    problem_count: int
    def __init__(self, valid: bool = ..., problems: _Optional[_Iterable[_Union[_types_pb2.Problem, _Mapping]]] = ..., problem_count: _Optional[int] = ...) -> None: ...

class ReportCacheRequest(_message.Message):
    __slots__ = ("name", "samplings", "batch_size", "epochs", "presample_epochs", "ratios", "random_seed", "dump_dir")
    NAME_FIELD_NUMBER: _ClassVar[int]
    SAMPLINGS_FIELD_NUMBER: _ClassVar[int]
    BATCH_SIZE_FIELD_NUMBER: _ClassVar[int]
    EPOCHS_FIELD_NUMBER: _ClassVar[int]
    PRESAMPLE_EPOCHS_FIELD_NUMBER: _ClassVar[int]
    RATIOS_FIELD_NUMBER: _ClassVar[int]
    RANDOM_SEED_FIELD_NUMBER: _ClassVar[int]
    DUMP_DIR_FIELD_NUMBER: _ClassVar[int]
    name: str
    samplings: _containers.RepeatedCompositeFieldContainer[_sampling_pb2.SamplingSpec]
    batch_size: int
    epochs: int
    presample_epochs: _containers.RepeatedScalarFieldContainer[int]
    ratios: _containers.RepeatedScalarFieldContainer[float]
    random_seed: int
    dump_dir: str
    def __init__(self, name: _Optional[str] = ..., samplings: _Optional[_Iterable[_Union[_sampling_pb2.SamplingSpec, _Mapping]]] = ..., batch_size: _Optional[int] = ..., epochs: _Optional[int] = ..., presample_epochs: _Optional[_Iterable[int]] = ..., ratios: _Optional[_Iterable[float]] = ..., random_seed: _Optional[int] = ..., dump_dir: _Optional[str] = ...) -> None: ...

class CacheReport(_message.Message):
    __slots__ = ("dataset", "digest", "samplings")
    DATASET_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    SAMPLINGS_FIELD_NUMBER: _ClassVar[int]
    dataset: str
    digest: str
    samplings: _containers.RepeatedCompositeFieldContainer[SamplingCacheReport]
    def __init__(self, dataset: _Optional[str] = ..., digest: _Optional[str] = ..., samplings: _Optional[_Iterable[_Union[SamplingCacheReport, _Mapping]]] = ...) -> None: ...

class SamplingCacheReport(_message.Message):
    __slots__ = ("sampling", "batches_per_epoch", "input_rows", "input_bytes", "similarity", "epoch_ns", "policies")
    SAMPLING_FIELD_NUMBER: _ClassVar[int]
    BATCHES_PER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    INPUT_ROWS_FIELD_NUMBER: _ClassVar[int]
    INPUT_BYTES_FIELD_NUMBER: _ClassVar[int]
    SIMILARITY_FIELD_NUMBER: _ClassVar[int]
    EPOCH_NS_FIELD_NUMBER: _ClassVar[int]
    POLICIES_FIELD_NUMBER: _ClassVar[int]
    sampling: _sampling_pb2.SamplingSpec
    batches_per_epoch: int
    input_rows: float
    input_bytes: float
    similarity: float
    epoch_ns: int
    policies: _containers.RepeatedCompositeFieldContainer[PolicyCacheReport]
    def __init__(self, sampling: _Optional[_Union[_sampling_pb2.SamplingSpec, _Mapping]] = ..., batches_per_epoch: _Optional[int] = ..., input_rows: _Optional[float] = ..., input_bytes: _Optional[float] = ..., similarity: _Optional[float] = ..., epoch_ns: _Optional[int] = ..., policies: _Optional[_Iterable[_Union[PolicyCacheReport, _Mapping]]] = ...) -> None: ...

class PolicyCacheReport(_message.Message):
    __slots__ = ("policy", "presample_epochs", "rank_ns", "cells")
    POLICY_FIELD_NUMBER: _ClassVar[int]
    PRESAMPLE_EPOCHS_FIELD_NUMBER: _ClassVar[int]
    RANK_NS_FIELD_NUMBER: _ClassVar[int]
    CELLS_FIELD_NUMBER: _ClassVar[int]
    policy: _features_pb2.CachePolicy
    presample_epochs: int
    rank_ns: int
    cells: _containers.RepeatedCompositeFieldContainer[CacheCell]
    def __init__(self, policy: _Optional[_Union[_features_pb2.CachePolicy, str]] = ..., presample_epochs: _Optional[int] = ..., rank_ns: _Optional[int] = ..., cells: _Optional[_Iterable[_Union[CacheCell, _Mapping]]] = ...) -> None: ...

class CacheCell(_message.Message):
    __slots__ = ("ratio", "rows", "hit_rate", "bytes_moved")
    RATIO_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    HIT_RATE_FIELD_NUMBER: _ClassVar[int]
    BYTES_MOVED_FIELD_NUMBER: _ClassVar[int]
    ratio: float
    rows: int
    hit_rate: float
    bytes_moved: float
    def __init__(self, ratio: _Optional[float] = ..., rows: _Optional[int] = ..., hit_rate: _Optional[float] = ..., bytes_moved: _Optional[float] = ...) -> None: ...

class GetOperationRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class WaitOperationRequest(_message.Message):
    __slots__ = ("name", "timeout_ms")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    name: str
    timeout_ms: int
    def __init__(self, name: _Optional[str] = ..., timeout_ms: _Optional[int] = ...) -> None: ...

class CancelOperationRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class PropagateDatasetRequest(_message.Message):
    __slots__ = ("name", "propagation", "standardize", "memory_bytes", "threads", "request_id", "device")
    NAME_FIELD_NUMBER: _ClassVar[int]
    PROPAGATION_FIELD_NUMBER: _ClassVar[int]
    STANDARDIZE_FIELD_NUMBER: _ClassVar[int]
    MEMORY_BYTES_FIELD_NUMBER: _ClassVar[int]
    THREADS_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    DEVICE_FIELD_NUMBER: _ClassVar[int]
    name: str
    propagation: _propagation_pb2.PropagationSpec
    standardize: bool
    memory_bytes: int
    threads: int
    request_id: str
    device: str
    def __init__(self, name: _Optional[str] = ..., propagation: _Optional[_Union[_propagation_pb2.PropagationSpec, _Mapping]] = ..., standardize: bool = ..., memory_bytes: _Optional[int] = ..., threads: _Optional[int] = ..., request_id: _Optional[str] = ..., device: _Optional[str] = ...) -> None: ...

class PlanPropagationRequest(_message.Message):
    __slots__ = ("request",)
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    request: PropagateDatasetRequest
    def __init__(self, request: _Optional[_Union[PropagateDatasetRequest, _Mapping]] = ...) -> None: ...

class Propagation(_message.Message):
    __slots__ = ("name", "dataset", "dataset_digest", "propagation", "standardize", "complete", "rows", "bytes", "peak_bytes", "memory_bytes", "block_columns", "path", "digest")
    NAME_FIELD_NUMBER: _ClassVar[int]
    DATASET_FIELD_NUMBER: _ClassVar[int]
    DATASET_DIGEST_FIELD_NUMBER: _ClassVar[int]
    PROPAGATION_FIELD_NUMBER: _ClassVar[int]
    STANDARDIZE_FIELD_NUMBER: _ClassVar[int]
    COMPLETE_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    PEAK_BYTES_FIELD_NUMBER: _ClassVar[int]
    MEMORY_BYTES_FIELD_NUMBER: _ClassVar[int]
    BLOCK_COLUMNS_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    name: str
    dataset: str
    dataset_digest: str
    propagation: _propagation_pb2.PropagationSpec
    standardize: bool
    complete: bool
    rows: int
    bytes: int
    peak_bytes: int
    memory_bytes: int
    block_columns: int
    path: str
    digest: str
    def __init__(self, name: _Optional[str] = ..., dataset: _Optional[str] = ..., dataset_digest: _Optional[str] = ..., propagation: _Optional[_Union[_propagation_pb2.PropagationSpec, _Mapping]] = ..., standardize: bool = ..., complete: bool = ..., rows: _Optional[int] = ..., bytes: _Optional[int] = ..., peak_bytes: _Optional[int] = ..., memory_bytes: _Optional[int] = ..., block_columns: _Optional[int] = ..., path: _Optional[str] = ..., digest: _Optional[str] = ...) -> None: ...

class ListPropagationsRequest(_message.Message):
    __slots__ = ("dataset",)
    DATASET_FIELD_NUMBER: _ClassVar[int]
    dataset: str
    def __init__(self, dataset: _Optional[str] = ...) -> None: ...

class ListPropagationsResponse(_message.Message):
    __slots__ = ("propagations",)
    PROPAGATIONS_FIELD_NUMBER: _ClassVar[int]
    propagations: _containers.RepeatedCompositeFieldContainer[Propagation]
    def __init__(self, propagations: _Optional[_Iterable[_Union[Propagation, _Mapping]]] = ...) -> None: ...

class DeletePropagationRequest(_message.Message):
    __slots__ = ("name", "allow_missing")
    NAME_FIELD_NUMBER: _ClassVar[int]
    ALLOW_MISSING_FIELD_NUMBER: _ClassVar[int]
    name: str
    allow_missing: bool
    def __init__(self, name: _Optional[str] = ..., allow_missing: bool = ...) -> None: ...

class DeletePropagationResponse(_message.Message):
    __slots__ = ("bytes",)
    BYTES_FIELD_NUMBER: _ClassVar[int]
    bytes: int
    def __init__(self, bytes: _Optional[int] = ...) -> None: ...
