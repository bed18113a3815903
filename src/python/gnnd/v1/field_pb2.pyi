from google.protobuf import descriptor_pb2 as _descriptor_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Unit(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    UNIT_UNSPECIFIED: _ClassVar[Unit]
    UNIT_MILLISECONDS: _ClassVar[Unit]
    UNIT_BYTES: _ClassVar[Unit]
    UNIT_EPOCHS: _ClassVar[Unit]
    UNIT_BATCHES: _ClassVar[Unit]
    UNIT_STEPS: _ClassVar[Unit]
    UNIT_NODES: _ClassVar[Unit]
    UNIT_SHARE: _ClassVar[Unit]

class Bits(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    BITS_UNSPECIFIED: _ClassVar[Bits]
    BITS_MODEL: _ClassVar[Bits]
    BITS_BEST_PARAMETERS: _ClassVar[Bits]
UNIT_UNSPECIFIED: Unit
UNIT_MILLISECONDS: Unit
UNIT_BYTES: Unit
UNIT_EPOCHS: Unit
UNIT_BATCHES: Unit
UNIT_STEPS: Unit
UNIT_NODES: Unit
UNIT_SHARE: Unit
BITS_UNSPECIFIED: Bits
BITS_MODEL: Bits
BITS_BEST_PARAMETERS: Bits
FIELD_FIELD_NUMBER: _ClassVar[int]
field: _descriptor.FieldDescriptor

class SpecField(_message.Message):
    __slots__ = ("about", "required", "default", "default_rule", "gt", "gte", "lt", "lte", "also", "range_rule", "max_items", "max_length", "unit", "bits", "only_for", "otherwise")
    ABOUT_FIELD_NUMBER: _ClassVar[int]
    REQUIRED_FIELD_NUMBER: _ClassVar[int]
    DEFAULT_FIELD_NUMBER: _ClassVar[int]
    DEFAULT_RULE_FIELD_NUMBER: _ClassVar[int]
    GT_FIELD_NUMBER: _ClassVar[int]
    GTE_FIELD_NUMBER: _ClassVar[int]
    LT_FIELD_NUMBER: _ClassVar[int]
    LTE_FIELD_NUMBER: _ClassVar[int]
    ALSO_FIELD_NUMBER: _ClassVar[int]
    RANGE_RULE_FIELD_NUMBER: _ClassVar[int]
    MAX_ITEMS_FIELD_NUMBER: _ClassVar[int]
    MAX_LENGTH_FIELD_NUMBER: _ClassVar[int]
    UNIT_FIELD_NUMBER: _ClassVar[int]
    BITS_FIELD_NUMBER: _ClassVar[int]
    ONLY_FOR_FIELD_NUMBER: _ClassVar[int]
    OTHERWISE_FIELD_NUMBER: _ClassVar[int]
    about: str
    required: bool
    default: str
    default_rule: str
    gt: float
    gte: float
    lt: float
    lte: float
    also: _containers.RepeatedCompositeFieldContainer[SpecSpecial]
    range_rule: str
    max_items: int
    max_length: int
    unit: Unit
    bits: Bits
    only_for: SpecOwner
    otherwise: str
    def __init__(self, about: _Optional[str] = ..., required: bool = ..., default: _Optional[str] = ..., default_rule: _Optional[str] = ..., gt: _Optional[float] = ..., gte: _Optional[float] = ..., lt: _Optional[float] = ..., lte: _Optional[float] = ..., also: _Optional[_Iterable[_Union[SpecSpecial, _Mapping]]] = ..., range_rule: _Optional[str] = ..., max_items: _Optional[int] = ..., max_length: _Optional[int] = ..., unit: _Optional[_Union[Unit, str]] = ..., bits: _Optional[_Union[Bits, str]] = ..., only_for: _Optional[_Union[SpecOwner, _Mapping]] = ..., otherwise: _Optional[str] = ...) -> None: ...

class SpecSpecial(_message.Message):
    __slots__ = ("value", "means")
    VALUE_FIELD_NUMBER: _ClassVar[int]
    MEANS_FIELD_NUMBER: _ClassVar[int]
    value: float
    means: str
    def __init__(self, value: _Optional[float] = ..., means: _Optional[str] = ...) -> None: ...

class SpecOwner(_message.Message):
    __slots__ = ("field", "values", "name")
    FIELD_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    EXCEPT_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    field: str
    values: _containers.RepeatedScalarFieldContainer[str]
    name: str
    def __init__(self, field: _Optional[str] = ..., values: _Optional[_Iterable[str]] = ..., name: _Optional[str] = ..., **kwargs) -> None: ...
