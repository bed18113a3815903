from gnnd.v1 import field_pb2 as _field_pb2
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class CachePolicy(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CACHE_POLICY_UNSPECIFIED: _ClassVar[CachePolicy]
    CACHE_POLICY_COMBINED: _ClassVar[CachePolicy]
    CACHE_POLICY_PRESC: _ClassVar[CachePolicy]
    CACHE_POLICY_PROBABILITY: _ClassVar[CachePolicy]
    CACHE_POLICY_DEGREE: _ClassVar[CachePolicy]
    CACHE_POLICY_RANDOM: _ClassVar[CachePolicy]
    CACHE_POLICY_OPTIMAL: _ClassVar[CachePolicy]

class Prefetch(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PREFETCH_UNSPECIFIED: _ClassVar[Prefetch]
    PREFETCH_AUTO: _ClassVar[Prefetch]
    PREFETCH_ON: _ClassVar[Prefetch]
    PREFETCH_OFF: _ClassVar[Prefetch]

class CachePlacement(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CACHE_PLACEMENT_UNSPECIFIED: _ClassVar[CachePlacement]
    CACHE_PLACEMENT_AUTO: _ClassVar[CachePlacement]
    CACHE_PLACEMENT_NONE: _ClassVar[CachePlacement]
CACHE_POLICY_UNSPECIFIED: CachePolicy
CACHE_POLICY_COMBINED: CachePolicy
CACHE_POLICY_PRESC: CachePolicy
CACHE_POLICY_PROBABILITY: CachePolicy
CACHE_POLICY_DEGREE: CachePolicy
CACHE_POLICY_RANDOM: CachePolicy
CACHE_POLICY_OPTIMAL: CachePolicy
PREFETCH_UNSPECIFIED: Prefetch
PREFETCH_AUTO: Prefetch
PREFETCH_ON: Prefetch
PREFETCH_OFF: Prefetch
CACHE_PLACEMENT_UNSPECIFIED: CachePlacement
CACHE_PLACEMENT_AUTO: CachePlacement
CACHE_PLACEMENT_NONE: CachePlacement

class FeaturesSpec(_message.Message):
    __slots__ = ("standardize",)
    STANDARDIZE_FIELD_NUMBER: _ClassVar[int]
    standardize: bool
    def __init__(self, standardize: bool = ...) -> None: ...

class CacheSpec(_message.Message):
    __slots__ = ("policy", "presample_epochs", "ratio", "standby_ratio", "prefetch", "placement")
    POLICY_FIELD_NUMBER: _ClassVar[int]
    PRESAMPLE_EPOCHS_FIELD_NUMBER: _ClassVar[int]
    RATIO_FIELD_NUMBER: _ClassVar[int]
    STANDBY_RATIO_FIELD_NUMBER: _ClassVar[int]
    PREFETCH_FIELD_NUMBER: _ClassVar[int]
    PLACEMENT_FIELD_NUMBER: _ClassVar[int]
    policy: CachePolicy
    presample_epochs: int
    ratio: float
    standby_ratio: float
    prefetch: Prefetch
    placement: CachePlacement
    def __init__(self, policy: _Optional[_Union[CachePolicy, str]] = ..., presample_epochs: _Optional[int] = ..., ratio: _Optional[float] = ..., standby_ratio: _Optional[float] = ..., prefetch: _Optional[_Union[Prefetch, str]] = ..., placement: _Optional[_Union[CachePlacement, str]] = ...) -> None: ...
