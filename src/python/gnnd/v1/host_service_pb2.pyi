import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class DeviceKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    DEVICE_KIND_UNSPECIFIED: _ClassVar[DeviceKind]
    DEVICE_KIND_CPU: _ClassVar[DeviceKind]
    DEVICE_KIND_CUDA: _ClassVar[DeviceKind]
    DEVICE_KIND_SIM: _ClassVar[DeviceKind]

class DeviceState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    DEVICE_STATE_UNSPECIFIED: _ClassVar[DeviceState]
    DEVICE_STATE_FREE: _ClassVar[DeviceState]
    DEVICE_STATE_ALLOCATED: _ClassVar[DeviceState]
    DEVICE_STATE_QUARANTINED: _ClassVar[DeviceState]
    DEVICE_STATE_UNUSED: _ClassVar[DeviceState]
    DEVICE_STATE_DRAINED: _ClassVar[DeviceState]

class LinkKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    LINK_KIND_UNSPECIFIED: _ClassVar[LinkKind]
    LINK_KIND_NVLINK: _ClassVar[LinkKind]
    LINK_KIND_PCIE: _ClassVar[LinkKind]
    LINK_KIND_HOST_BUS: _ClassVar[LinkKind]

class GarbageKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    GARBAGE_KIND_UNSPECIFIED: _ClassVar[GarbageKind]
    GARBAGE_KIND_JOB: _ClassVar[GarbageKind]
    GARBAGE_KIND_LOG: _ClassVar[GarbageKind]
    GARBAGE_KIND_DERIVED_FILE: _ClassVar[GarbageKind]
    GARBAGE_KIND_EVENTS: _ClassVar[GarbageKind]
    GARBAGE_KIND_OPERATIONS: _ClassVar[GarbageKind]
DEVICE_KIND_UNSPECIFIED: DeviceKind
DEVICE_KIND_CPU: DeviceKind
DEVICE_KIND_CUDA: DeviceKind
DEVICE_KIND_SIM: DeviceKind
DEVICE_STATE_UNSPECIFIED: DeviceState
DEVICE_STATE_FREE: DeviceState
DEVICE_STATE_ALLOCATED: DeviceState
DEVICE_STATE_QUARANTINED: DeviceState
DEVICE_STATE_UNUSED: DeviceState
DEVICE_STATE_DRAINED: DeviceState
LINK_KIND_UNSPECIFIED: LinkKind
LINK_KIND_NVLINK: LinkKind
LINK_KIND_PCIE: LinkKind
LINK_KIND_HOST_BUS: LinkKind
GARBAGE_KIND_UNSPECIFIED: GarbageKind
GARBAGE_KIND_JOB: GarbageKind
GARBAGE_KIND_LOG: GarbageKind
GARBAGE_KIND_DERIVED_FILE: GarbageKind
GARBAGE_KIND_EVENTS: GarbageKind
GARBAGE_KIND_OPERATIONS: GarbageKind

class GetHostRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Host(_message.Message):
    __slots__ = ("hostname", "version", "pid", "start_time", "cores", "memory_bytes", "instruction_set", "ready", "notes", "state_dir", "jobs")
    class JobsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    HOSTNAME_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    PID_FIELD_NUMBER: _ClassVar[int]
    START_TIME_FIELD_NUMBER: _ClassVar[int]
    CORES_FIELD_NUMBER: _ClassVar[int]
    MEMORY_BYTES_FIELD_NUMBER: _ClassVar[int]
    INSTRUCTION_SET_FIELD_NUMBER: _ClassVar[int]
    READY_FIELD_NUMBER: _ClassVar[int]
    NOTES_FIELD_NUMBER: _ClassVar[int]
    STATE_DIR_FIELD_NUMBER: _ClassVar[int]
    JOBS_FIELD_NUMBER: _ClassVar[int]
    hostname: str
    version: str
    pid: int
    start_time: _timestamp_pb2.Timestamp
    cores: int
    memory_bytes: int
    instruction_set: str
    ready: bool
    notes: _containers.RepeatedScalarFieldContainer[str]
    state_dir: str
    jobs: _containers.ScalarMap[str, int]
    def __init__(self, hostname: _Optional[str] = ..., version: _Optional[str] = ..., pid: _Optional[int] = ..., start_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., cores: _Optional[int] = ..., memory_bytes: _Optional[int] = ..., instruction_set: _Optional[str] = ..., ready: bool = ..., notes: _Optional[_Iterable[str]] = ..., state_dir: _Optional[str] = ..., jobs: _Optional[_Mapping[str, int]] = ...) -> None: ...

class Device(_message.Message):
    __slots__ = ("name", "kind", "state", "job", "cores", "uuid", "product", "pci", "memory_bytes", "budget_bytes", "peers", "note", "bits", "peer_links")
    NAME_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    JOB_FIELD_NUMBER: _ClassVar[int]
    CORES_FIELD_NUMBER: _ClassVar[int]
    UUID_FIELD_NUMBER: _ClassVar[int]
    PRODUCT_FIELD_NUMBER: _ClassVar[int]
    PCI_FIELD_NUMBER: _ClassVar[int]
    MEMORY_BYTES_FIELD_NUMBER: _ClassVar[int]
    BUDGET_BYTES_FIELD_NUMBER: _ClassVar[int]
    PEERS_FIELD_NUMBER: _ClassVar[int]
    NOTE_FIELD_NUMBER: _ClassVar[int]
    BITS_FIELD_NUMBER: _ClassVar[int]
    PEER_LINKS_FIELD_NUMBER: _ClassVar[int]
    name: str
    kind: DeviceKind
    state: DeviceState
    job: str
    cores: _containers.RepeatedScalarFieldContainer[int]
    uuid: str
    product: str
    pci: str
    memory_bytes: int
    budget_bytes: int
    peers: _containers.RepeatedScalarFieldContainer[str]
    note: str
    bits: str
    peer_links: _containers.RepeatedScalarFieldContainer[LinkKind]
    def __init__(self, name: _Optional[str] = ..., kind: _Optional[_Union[DeviceKind, str]] = ..., state: _Optional[_Union[DeviceState, str]] = ..., job: _Optional[str] = ..., cores: _Optional[_Iterable[int]] = ..., uuid: _Optional[str] = ..., product: _Optional[str] = ..., pci: _Optional[str] = ..., memory_bytes: _Optional[int] = ..., budget_bytes: _Optional[int] = ..., peers: _Optional[_Iterable[str]] = ..., note: _Optional[str] = ..., bits: _Optional[str] = ..., peer_links: _Optional[_Iterable[_Union[LinkKind, str]]] = ...) -> None: ...

class DrainDeviceRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class UndrainDeviceRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class ListDevicesRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class CreatePageLinkRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class PageLink(_message.Message):
    __slots__ = ("address", "expire_time")
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    EXPIRE_TIME_FIELD_NUMBER: _ClassVar[int]
    address: str
    expire_time: _timestamp_pb2.Timestamp
    def __init__(self, address: _Optional[str] = ..., expire_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class ListDevicesResponse(_message.Message):
    __slots__ = ("devices",)
    DEVICES_FIELD_NUMBER: _ClassVar[int]
    devices: _containers.RepeatedCompositeFieldContainer[Device]
    def __init__(self, devices: _Optional[_Iterable[_Union[Device, _Mapping]]] = ...) -> None: ...

class CollectGarbageRequest(_message.Message):
    __slots__ = ("dry_run",)
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    dry_run: bool
    def __init__(self, dry_run: bool = ...) -> None: ...

class GarbageItem(_message.Message):
    __slots__ = ("kind", "name", "bytes", "reason")
    KIND_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    kind: GarbageKind
    name: str
    bytes: int
    reason: str
    def __init__(self, kind: _Optional[_Union[GarbageKind, str]] = ..., name: _Optional[str] = ..., bytes: _Optional[int] = ..., reason: _Optional[str] = ...) -> None: ...

class CollectGarbageResponse(_message.Message):
    __slots__ = ("items", "item_count", "bytes", "orphans")
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    ITEM_COUNT_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    ORPHANS_FIELD_NUMBER: _ClassVar[int]
    items: _containers.RepeatedCompositeFieldContainer[GarbageItem]
    item_count: int
    bytes: int
    orphans: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, items: _Optional[_Iterable[_Union[GarbageItem, _Mapping]]] = ..., item_count: _Optional[int] = ..., bytes: _Optional[int] = ..., orphans: _Optional[_Iterable[str]] = ...) -> None: ...
