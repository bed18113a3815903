from gnnd.v1 import sampling_pb2 as _sampling_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class LinkLayout(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    LINK_LAYOUT_UNSPECIFIED: _ClassVar[LinkLayout]
    LINK_LAYOUT_NONE: _ClassVar[LinkLayout]
    LINK_LAYOUT_PAIRS: _ClassVar[LinkLayout]
    LINK_LAYOUT_FULL: _ClassVar[LinkLayout]

class PlacementWay(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PLACEMENT_WAY_UNSPECIFIED: _ClassVar[PlacementWay]
    PLACEMENT_WAY_PLANNED: _ClassVar[PlacementWay]
    PLACEMENT_WAY_SPREAD: _ClassVar[PlacementWay]
    PLACEMENT_WAY_PREFIX: _ClassVar[PlacementWay]
    PLACEMENT_WAY_PARTITION: _ClassVar[PlacementWay]
    PLACEMENT_WAY_RANDOM: _ClassVar[PlacementWay]
LINK_LAYOUT_UNSPECIFIED: LinkLayout
LINK_LAYOUT_NONE: LinkLayout
LINK_LAYOUT_PAIRS: LinkLayout
LINK_LAYOUT_FULL: LinkLayout
PLACEMENT_WAY_UNSPECIFIED: PlacementWay
PLACEMENT_WAY_PLANNED: PlacementWay
PLACEMENT_WAY_SPREAD: PlacementWay
PLACEMENT_WAY_PREFIX: PlacementWay
PLACEMENT_WAY_PARTITION: PlacementWay
PLACEMENT_WAY_RANDOM: PlacementWay

class SimulatePlacementRequest(_message.Message):
    __slots__ = ("name", "sampling", "batch_size", "epochs", "random_seed", "device_counts", "links", "ratios", "host_rate", "peer_rate")
    NAME_FIELD_NUMBER: _ClassVar[int]
    SAMPLING_FIELD_NUMBER: _ClassVar[int]
    BATCH_SIZE_FIELD_NUMBER: _ClassVar[int]
    EPOCHS_FIELD_NUMBER: _ClassVar[int]
    RANDOM_SEED_FIELD_NUMBER: _ClassVar[int]
    DEVICE_COUNTS_FIELD_NUMBER: _ClassVar[int]
    LINKS_FIELD_NUMBER: _ClassVar[int]
    RATIOS_FIELD_NUMBER: _ClassVar[int]
    HOST_RATE_FIELD_NUMBER: _ClassVar[int]
    PEER_RATE_FIELD_NUMBER: _ClassVar[int]
    name: str
    sampling: _sampling_pb2.SamplingSpec
    batch_size: int
    epochs: int
    random_seed: int
    device_counts: _containers.RepeatedScalarFieldContainer[int]
    links: _containers.RepeatedScalarFieldContainer[LinkLayout]
    ratios: _containers.RepeatedScalarFieldContainer[float]
    host_rate: float
    peer_rate: float
    def __init__(self, name: _Optional[str] = ..., sampling: _Optional[_Union[_sampling_pb2.SamplingSpec, _Mapping]] = ..., batch_size: _Optional[int] = ..., epochs: _Optional[int] = ..., random_seed: _Optional[int] = ..., device_counts: _Optional[_Iterable[int]] = ..., links: _Optional[_Iterable[_Union[LinkLayout, str]]] = ..., ratios: _Optional[_Iterable[float]] = ..., host_rate: _Optional[float] = ..., peer_rate: _Optional[float] = ...) -> None: ...

class PlacementSimulation(_message.Message):
    __slots__ = ("dataset", "digest", "sampling", "batches_per_epoch", "input_rows", "row_bytes", "host_rate", "peer_rate", "layouts")
    DATASET_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    SAMPLING_FIELD_NUMBER: _ClassVar[int]
    BATCHES_PER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    INPUT_ROWS_FIELD_NUMBER: _ClassVar[int]
    ROW_BYTES_FIELD_NUMBER: _ClassVar[int]
    HOST_RATE_FIELD_NUMBER: _ClassVar[int]
    PEER_RATE_FIELD_NUMBER: _ClassVar[int]
    LAYOUTS_FIELD_NUMBER: _ClassVar[int]
    dataset: str
    digest: str
    sampling: _sampling_pb2.SamplingSpec
    batches_per_epoch: int
    input_rows: float
    row_bytes: int
    host_rate: float
    peer_rate: float
    layouts: _containers.RepeatedCompositeFieldContainer[SimulatedLayout]
    def __init__(self, dataset: _Optional[str] = ..., digest: _Optional[str] = ..., sampling: _Optional[_Union[_sampling_pb2.SamplingSpec, _Mapping]] = ..., batches_per_epoch: _Optional[int] = ..., input_rows: _Optional[float] = ..., row_bytes: _Optional[int] = ..., host_rate: _Optional[float] = ..., peer_rate: _Optional[float] = ..., layouts: _Optional[_Iterable[_Union[SimulatedLayout, _Mapping]]] = ...) -> None: ...

class SimulatedLayout(_message.Message):
    __slots__ = ("devices", "links", "ratio", "device_rows", "placements")
    DEVICES_FIELD_NUMBER: _ClassVar[int]
    LINKS_FIELD_NUMBER: _ClassVar[int]
    RATIO_FIELD_NUMBER: _ClassVar[int]
    DEVICE_ROWS_FIELD_NUMBER: _ClassVar[int]
    PLACEMENTS_FIELD_NUMBER: _ClassVar[int]
    devices: int
    links: LinkLayout
    ratio: float
    device_rows: int
    placements: _containers.RepeatedCompositeFieldContainer[SimulatedPlacement]
    def __init__(self, devices: _Optional[int] = ..., links: _Optional[_Union[LinkLayout, str]] = ..., ratio: _Optional[float] = ..., device_rows: _Optional[int] = ..., placements: _Optional[_Iterable[_Union[SimulatedPlacement, _Mapping]]] = ...) -> None: ...

class SimulatedPlacement(_message.Message):
    __slots__ = ("way", "host_bytes", "peer_bytes", "extract_ns", "devices", "pieces")
    WAY_FIELD_NUMBER: _ClassVar[int]
    HOST_BYTES_FIELD_NUMBER: _ClassVar[int]
    PEER_BYTES_FIELD_NUMBER: _ClassVar[int]
    EXTRACT_NS_FIELD_NUMBER: _ClassVar[int]
    DEVICES_FIELD_NUMBER: _ClassVar[int]
    PIECES_FIELD_NUMBER: _ClassVar[int]
    way: PlacementWay
    host_bytes: float
    peer_bytes: float
    extract_ns: float
    devices: _containers.RepeatedCompositeFieldContainer[SimulatedDevice]
    pieces: _containers.RepeatedCompositeFieldContainer[PlacementPiece]
    def __init__(self, way: _Optional[_Union[PlacementWay, str]] = ..., host_bytes: _Optional[float] = ..., peer_bytes: _Optional[float] = ..., extract_ns: _Optional[float] = ..., devices: _Optional[_Iterable[_Union[SimulatedDevice, _Mapping]]] = ..., pieces: _Optional[_Iterable[_Union[PlacementPiece, _Mapping]]] = ...) -> None: ...

class SimulatedDevice(_message.Message):
    __slots__ = ("copied_rows", "dealt_rows", "own_share", "peer_share", "host_share", "extract_ns")
    COPIED_ROWS_FIELD_NUMBER: _ClassVar[int]
    DEALT_ROWS_FIELD_NUMBER: _ClassVar[int]
    OWN_SHARE_FIELD_NUMBER: _ClassVar[int]
    PEER_SHARE_FIELD_NUMBER: _ClassVar[int]
    HOST_SHARE_FIELD_NUMBER: _ClassVar[int]
    EXTRACT_NS_FIELD_NUMBER: _ClassVar[int]
    copied_rows: int
    dealt_rows: int
    own_share: float
    peer_share: float
    host_share: float
    extract_ns: float
    def __init__(self, copied_rows: _Optional[int] = ..., dealt_rows: _Optional[int] = ..., own_share: _Optional[float] = ..., peer_share: _Optional[float] = ..., host_share: _Optional[float] = ..., extract_ns: _Optional[float] = ...) -> None: ...

class PlacementPiece(_message.Message):
    __slots__ = ("to", "devices", "dealt")
    FROM_FIELD_NUMBER: _ClassVar[int]
    TO_FIELD_NUMBER: _ClassVar[int]
    DEVICES_FIELD_NUMBER: _ClassVar[int]
    DEALT_FIELD_NUMBER: _ClassVar[int]
    to: int
    devices: _containers.RepeatedScalarFieldContainer[int]
    dealt: bool
    def __init__(self, to: _Optional[int] = ..., devices: _Optional[_Iterable[int]] = ..., dealt: bool = ..., **kwargs) -> None: ...
