from gnnd.v1 import field_pb2 as _field_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class RowsFrom(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ROWS_FROM_UNSPECIFIED: _ClassVar[RowsFrom]
    ROWS_FROM_AUTO: _ClassVar[RowsFrom]
    ROWS_FROM_HOST: _ClassVar[RowsFrom]
    ROWS_FROM_DISK: _ClassVar[RowsFrom]
    ROWS_FROM_DEVICE: _ClassVar[RowsFrom]

class DeviceChoice(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    DEVICE_CHOICE_UNSPECIFIED: _ClassVar[DeviceChoice]
    DEVICE_CHOICE_AUTO: _ClassVar[DeviceChoice]
    DEVICE_CHOICE_CPU: _ClassVar[DeviceChoice]
    DEVICE_CHOICE_CUDA: _ClassVar[DeviceChoice]
    DEVICE_CHOICE_SIM: _ClassVar[DeviceChoice]

class TopologySource(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    TOPOLOGY_SOURCE_UNSPECIFIED: _ClassVar[TopologySource]
    TOPOLOGY_SOURCE_AUTO: _ClassVar[TopologySource]
    TOPOLOGY_SOURCE_MEMORY: _ClassVar[TopologySource]
    TOPOLOGY_SOURCE_FILE: _ClassVar[TopologySource]

class PlacementPolicy(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PLACEMENT_POLICY_UNSPECIFIED: _ClassVar[PlacementPolicy]
    PLACEMENT_POLICY_AUTO: _ClassVar[PlacementPolicy]
    PLACEMENT_POLICY_PAPER: _ClassVar[PlacementPolicy]
    PLACEMENT_POLICY_MINMAX: _ClassVar[PlacementPolicy]
    PLACEMENT_POLICY_FIXED: _ClassVar[PlacementPolicy]

class StandbyPolicy(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    STANDBY_POLICY_UNSPECIFIED: _ClassVar[StandbyPolicy]
    STANDBY_POLICY_AUTO: _ClassVar[StandbyPolicy]
    STANDBY_POLICY_OFF: _ClassVar[StandbyPolicy]
    STANDBY_POLICY_ALWAYS: _ClassVar[StandbyPolicy]
ROWS_FROM_UNSPECIFIED: RowsFrom
ROWS_FROM_AUTO: RowsFrom
ROWS_FROM_HOST: RowsFrom
ROWS_FROM_DISK: RowsFrom
ROWS_FROM_DEVICE: RowsFrom
DEVICE_CHOICE_UNSPECIFIED: DeviceChoice
DEVICE_CHOICE_AUTO: DeviceChoice
DEVICE_CHOICE_CPU: DeviceChoice
DEVICE_CHOICE_CUDA: DeviceChoice
DEVICE_CHOICE_SIM: DeviceChoice
TOPOLOGY_SOURCE_UNSPECIFIED: TopologySource
TOPOLOGY_SOURCE_AUTO: TopologySource
TOPOLOGY_SOURCE_MEMORY: TopologySource
TOPOLOGY_SOURCE_FILE: TopologySource
PLACEMENT_POLICY_UNSPECIFIED: PlacementPolicy
PLACEMENT_POLICY_AUTO: PlacementPolicy
PLACEMENT_POLICY_PAPER: PlacementPolicy
PLACEMENT_POLICY_MINMAX: PlacementPolicy
PLACEMENT_POLICY_FIXED: PlacementPolicy
STANDBY_POLICY_UNSPECIFIED: StandbyPolicy
STANDBY_POLICY_AUTO: StandbyPolicy
STANDBY_POLICY_OFF: StandbyPolicy
STANDBY_POLICY_ALWAYS: StandbyPolicy

class ResourcesSpec(_message.Message):
    __slots__ = ("devices", "device_names", "device_memory_bytes", "host_memory_bytes", "device_kind", "topology", "pinned_features_bytes", "rows_from")
    DEVICES_FIELD_NUMBER: _ClassVar[int]
    DEVICE_NAMES_FIELD_NUMBER: _ClassVar[int]
    DEVICE_MEMORY_BYTES_FIELD_NUMBER: _ClassVar[int]
    HOST_MEMORY_BYTES_FIELD_NUMBER: _ClassVar[int]
    DEVICE_KIND_FIELD_NUMBER: _ClassVar[int]
    TOPOLOGY_FIELD_NUMBER: _ClassVar[int]
    PINNED_FEATURES_BYTES_FIELD_NUMBER: _ClassVar[int]
    ROWS_FROM_FIELD_NUMBER: _ClassVar[int]
    devices: int
    device_names: _containers.RepeatedScalarFieldContainer[str]
    device_memory_bytes: int
    host_memory_bytes: int
    device_kind: DeviceChoice
    topology: TopologySource
    pinned_features_bytes: int
    rows_from: RowsFrom
    def __init__(self, devices: _Optional[int] = ..., device_names: _Optional[_Iterable[str]] = ..., device_memory_bytes: _Optional[int] = ..., host_memory_bytes: _Optional[int] = ..., device_kind: _Optional[_Union[DeviceChoice, str]] = ..., topology: _Optional[_Union[TopologySource, str]] = ..., pinned_features_bytes: _Optional[int] = ..., rows_from: _Optional[_Union[RowsFrom, str]] = ...) -> None: ...

class PlacementSpec(_message.Message):
    __slots__ = ("policy", "samplers", "standby")
    POLICY_FIELD_NUMBER: _ClassVar[int]
    SAMPLERS_FIELD_NUMBER: _ClassVar[int]
    STANDBY_FIELD_NUMBER: _ClassVar[int]
    policy: PlacementPolicy
    samplers: int
    standby: StandbyPolicy
    def __init__(self, policy: _Optional[_Union[PlacementPolicy, str]] = ..., samplers: _Optional[int] = ..., standby: _Optional[_Union[StandbyPolicy, str]] = ...) -> None: ...

class QueueSpec(_message.Message):
    __slots__ = ("capacity", "max_bytes")
    CAPACITY_FIELD_NUMBER: _ClassVar[int]
    MAX_BYTES_FIELD_NUMBER: _ClassVar[int]
    capacity: int
    max_bytes: int
    def __init__(self, capacity: _Optional[int] = ..., max_bytes: _Optional[int] = ...) -> None: ...
