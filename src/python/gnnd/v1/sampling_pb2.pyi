from gnnd.v1 import field_pb2 as _field_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class SamplingAlgorithm(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SAMPLING_ALGORITHM_UNSPECIFIED: _ClassVar[SamplingAlgorithm]
    SAMPLING_ALGORITHM_KHOP_UNIFORM: _ClassVar[SamplingAlgorithm]
    SAMPLING_ALGORITHM_KHOP_WEIGHTED: _ClassVar[SamplingAlgorithm]
    SAMPLING_ALGORITHM_RANDOM_WALK: _ClassVar[SamplingAlgorithm]
    SAMPLING_ALGORITHM_LABOR: _ClassVar[SamplingAlgorithm]
    SAMPLING_ALGORITHM_KHOP_PLUGIN: _ClassVar[SamplingAlgorithm]

class Expansion(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    EXPANSION_UNSPECIFIED: _ClassVar[Expansion]
    EXPANSION_ALL: _ClassVar[Expansion]
    EXPANSION_NEW: _ClassVar[Expansion]

class LocalitySchedule(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    LOCALITY_SCHEDULE_UNSPECIFIED: _ClassVar[LocalitySchedule]
    LOCALITY_SCHEDULE_FIXED: _ClassVar[LocalitySchedule]
    LOCALITY_SCHEDULE_ADAPTIVE: _ClassVar[LocalitySchedule]
SAMPLING_ALGORITHM_UNSPECIFIED: SamplingAlgorithm
SAMPLING_ALGORITHM_KHOP_UNIFORM: SamplingAlgorithm
SAMPLING_ALGORITHM_KHOP_WEIGHTED: SamplingAlgorithm
SAMPLING_ALGORITHM_RANDOM_WALK: SamplingAlgorithm
SAMPLING_ALGORITHM_LABOR: SamplingAlgorithm
SAMPLING_ALGORITHM_KHOP_PLUGIN: SamplingAlgorithm
EXPANSION_UNSPECIFIED: Expansion
EXPANSION_ALL: Expansion
EXPANSION_NEW: Expansion
LOCALITY_SCHEDULE_UNSPECIFIED: LocalitySchedule
LOCALITY_SCHEDULE_FIXED: LocalitySchedule
LOCALITY_SCHEDULE_ADAPTIVE: LocalitySchedule

class WalkSpec(_message.Message):
    __slots__ = ("walks", "length", "restart_prob", "neighbors")
    WALKS_FIELD_NUMBER: _ClassVar[int]
    LENGTH_FIELD_NUMBER: _ClassVar[int]
    RESTART_PROB_FIELD_NUMBER: _ClassVar[int]
    NEIGHBORS_FIELD_NUMBER: _ClassVar[int]
    walks: int
    length: int
    restart_prob: float
    neighbors: int
    def __init__(self, walks: _Optional[int] = ..., length: _Optional[int] = ..., restart_prob: _Optional[float] = ..., neighbors: _Optional[int] = ...) -> None: ...

class LaborSpec(_message.Message):
    __slots__ = ("dependency_window",)
    DEPENDENCY_WINDOW_FIELD_NUMBER: _ClassVar[int]
    dependency_window: int
    def __init__(self, dependency_window: _Optional[int] = ...) -> None: ...

class LocalitySpec(_message.Message):
    __slots__ = ("max_scale", "schedule", "ratio", "hop_nodes")
    MAX_SCALE_FIELD_NUMBER: _ClassVar[int]
    SCHEDULE_FIELD_NUMBER: _ClassVar[int]
    RATIO_FIELD_NUMBER: _ClassVar[int]
    HOP_NODES_FIELD_NUMBER: _ClassVar[int]
    max_scale: float
    schedule: LocalitySchedule
    ratio: float
    hop_nodes: int
    def __init__(self, max_scale: _Optional[float] = ..., schedule: _Optional[_Union[LocalitySchedule, str]] = ..., ratio: _Optional[float] = ..., hop_nodes: _Optional[int] = ...) -> None: ...

class SamplerPluginSpec(_message.Message):
    __slots__ = ("path", "options", "weights", "sha256")
    PATH_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    WEIGHTS_FIELD_NUMBER: _ClassVar[int]
    SHA256_FIELD_NUMBER: _ClassVar[int]
    path: str
    options: str
    weights: bool
    sha256: str
    def __init__(self, path: _Optional[str] = ..., options: _Optional[str] = ..., weights: bool = ..., sha256: _Optional[str] = ...) -> None: ...

class SamplingSpec(_message.Message):
    __slots__ = ("fanouts", "algorithm", "replace", "expansion", "walk", "labor", "plugin", "locality")
    FANOUTS_FIELD_NUMBER: _ClassVar[int]
    ALGORITHM_FIELD_NUMBER: _ClassVar[int]
    REPLACE_FIELD_NUMBER: _ClassVar[int]
    EXPANSION_FIELD_NUMBER: _ClassVar[int]
    WALK_FIELD_NUMBER: _ClassVar[int]
    LABOR_FIELD_NUMBER: _ClassVar[int]
    PLUGIN_FIELD_NUMBER: _ClassVar[int]
    LOCALITY_FIELD_NUMBER: _ClassVar[int]
    fanouts: _containers.RepeatedScalarFieldContainer[int]
    algorithm: SamplingAlgorithm
    replace: bool
    expansion: Expansion
    walk: WalkSpec
    labor: LaborSpec
    plugin: SamplerPluginSpec
    locality: LocalitySpec
    def __init__(self, fanouts: _Optional[_Iterable[int]] = ..., algorithm: _Optional[_Union[SamplingAlgorithm, str]] = ..., replace: bool = ..., expansion: _Optional[_Union[Expansion, str]] = ..., walk: _Optional[_Union[WalkSpec, _Mapping]] = ..., labor: _Optional[_Union[LaborSpec, _Mapping]] = ..., plugin: _Optional[_Union[SamplerPluginSpec, _Mapping]] = ..., locality: _Optional[_Union[LocalitySpec, _Mapping]] = ...) -> None: ...
