from gnnd.v1 import resources_pb2 as _resources_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class RowTier(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ROW_TIER_UNSPECIFIED: _ClassVar[RowTier]
    ROW_TIER_DEVICE: _ClassVar[RowTier]
    ROW_TIER_HOST: _ClassVar[RowTier]
    ROW_TIER_DISK: _ClassVar[RowTier]
ROW_TIER_UNSPECIFIED: RowTier
ROW_TIER_DEVICE: RowTier
ROW_TIER_HOST: RowTier
ROW_TIER_DISK: RowTier

class MemoryPlan(_message.Message):
    __slots__ = ("parts", "surely_bytes", "at_most_bytes", "host_bytes", "topology", "topology_bytes", "features_on_disk", "features_bytes", "read_ahead_bytes", "rows", "inference", "pinned_rows", "pinned_explanation")
    PARTS_FIELD_NUMBER: _ClassVar[int]
    SURELY_BYTES_FIELD_NUMBER: _ClassVar[int]
    AT_MOST_BYTES_FIELD_NUMBER: _ClassVar[int]
    HOST_BYTES_FIELD_NUMBER: _ClassVar[int]
    TOPOLOGY_FIELD_NUMBER: _ClassVar[int]
    TOPOLOGY_BYTES_FIELD_NUMBER: _ClassVar[int]
    FEATURES_ON_DISK_FIELD_NUMBER: _ClassVar[int]
    FEATURES_BYTES_FIELD_NUMBER: _ClassVar[int]
    READ_AHEAD_BYTES_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    INFERENCE_FIELD_NUMBER: _ClassVar[int]
    PINNED_ROWS_FIELD_NUMBER: _ClassVar[int]
    PINNED_EXPLANATION_FIELD_NUMBER: _ClassVar[int]
    parts: _containers.RepeatedCompositeFieldContainer[MemoryPart]
    surely_bytes: int
    at_most_bytes: int
    host_bytes: int
    topology: _resources_pb2.TopologySource
    topology_bytes: int
    features_on_disk: bool
    features_bytes: int
    read_ahead_bytes: int
    rows: RowPlan
    inference: InferencePlan
    pinned_rows: int
    pinned_explanation: str
    def __init__(self, parts: _Optional[_Iterable[_Union[MemoryPart, _Mapping]]] = ..., surely_bytes: _Optional[int] = ..., at_most_bytes: _Optional[int] = ..., host_bytes: _Optional[int] = ..., topology: _Optional[_Union[_resources_pb2.TopologySource, str]] = ..., topology_bytes: _Optional[int] = ..., features_on_disk: bool = ..., features_bytes: _Optional[int] = ..., read_ahead_bytes: _Optional[int] = ..., rows: _Optional[_Union[RowPlan, _Mapping]] = ..., inference: _Optional[_Union[InferencePlan, _Mapping]] = ..., pinned_rows: _Optional[int] = ..., pinned_explanation: _Optional[str] = ...) -> None: ...

class InferencePlan(_message.Message):
    __slots__ = ("nodes", "chunks", "output_bytes", "scratch_bytes", "propagation_bytes")
    NODES_FIELD_NUMBER: _ClassVar[int]
    CHUNKS_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_BYTES_FIELD_NUMBER: _ClassVar[int]
    SCRATCH_BYTES_FIELD_NUMBER: _ClassVar[int]
    PROPAGATION_BYTES_FIELD_NUMBER: _ClassVar[int]
    nodes: int
    chunks: int
    output_bytes: int
    scratch_bytes: int
    propagation_bytes: int
    def __init__(self, nodes: _Optional[int] = ..., chunks: _Optional[int] = ..., output_bytes: _Optional[int] = ..., scratch_bytes: _Optional[int] = ..., propagation_bytes: _Optional[int] = ...) -> None: ...

class RowPlan(_message.Message):
    __slots__ = ("tier", "bytes", "chunk", "reason", "refused")
    TIER_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    REFUSED_FIELD_NUMBER: _ClassVar[int]
    tier: RowTier
    bytes: int
    chunk: int
    reason: str
    refused: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, tier: _Optional[_Union[RowTier, str]] = ..., bytes: _Optional[int] = ..., chunk: _Optional[int] = ..., reason: _Optional[str] = ..., refused: _Optional[_Iterable[str]] = ...) -> None: ...

class MemoryPart(_message.Message):
    __slots__ = ("name", "bytes", "bound", "field")
    NAME_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    BOUND_FIELD_NUMBER: _ClassVar[int]
    FIELD_FIELD_NUMBER: _ClassVar[int]
    name: str
    bytes: int
    bound: bool
    field: str
    def __init__(self, name: _Optional[str] = ..., bytes: _Optional[int] = ..., bound: bool = ..., field: _Optional[str] = ...) -> None: ...
