from gnnd.v1 import field_pb2 as _field_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class PropagationOperator(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PROPAGATION_OPERATOR_UNSPECIFIED: _ClassVar[PropagationOperator]
    PROPAGATION_OPERATOR_SYMMETRIC: _ClassVar[PropagationOperator]
    PROPAGATION_OPERATOR_ROW: _ClassVar[PropagationOperator]
    PROPAGATION_OPERATOR_PPR: _ClassVar[PropagationOperator]
    PROPAGATION_OPERATOR_HEAT: _ClassVar[PropagationOperator]

class RowDtype(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ROW_DTYPE_UNSPECIFIED: _ClassVar[RowDtype]
    ROW_DTYPE_FLOAT32: _ClassVar[RowDtype]
    ROW_DTYPE_FLOAT16: _ClassVar[RowDtype]
    ROW_DTYPE_BFLOAT16: _ClassVar[RowDtype]
PROPAGATION_OPERATOR_UNSPECIFIED: PropagationOperator
PROPAGATION_OPERATOR_SYMMETRIC: PropagationOperator
PROPAGATION_OPERATOR_ROW: PropagationOperator
PROPAGATION_OPERATOR_PPR: PropagationOperator
PROPAGATION_OPERATOR_HEAT: PropagationOperator
ROW_DTYPE_UNSPECIFIED: RowDtype
ROW_DTYPE_FLOAT32: RowDtype
ROW_DTYPE_FLOAT16: RowDtype
ROW_DTYPE_BFLOAT16: RowDtype

class PropagationSpec(_message.Message):
    __slots__ = ("operators", "hops", "self_loops", "alpha", "heat_time", "terms", "row_dtype", "random_seed", "standardize", "permute")
    OPERATORS_FIELD_NUMBER: _ClassVar[int]
    HOPS_FIELD_NUMBER: _ClassVar[int]
    SELF_LOOPS_FIELD_NUMBER: _ClassVar[int]
    ALPHA_FIELD_NUMBER: _ClassVar[int]
    HEAT_TIME_FIELD_NUMBER: _ClassVar[int]
    TERMS_FIELD_NUMBER: _ClassVar[int]
    ROW_DTYPE_FIELD_NUMBER: _ClassVar[int]
    RANDOM_SEED_FIELD_NUMBER: _ClassVar[int]
    STANDARDIZE_FIELD_NUMBER: _ClassVar[int]
    PERMUTE_FIELD_NUMBER: _ClassVar[int]
    operators: _containers.RepeatedScalarFieldContainer[PropagationOperator]
    hops: int
    self_loops: bool
    alpha: float
    heat_time: float
    terms: int
    row_dtype: RowDtype
    random_seed: int
    standardize: bool
    permute: bool
    def __init__(self, operators: _Optional[_Iterable[_Union[PropagationOperator, str]]] = ..., hops: _Optional[int] = ..., self_loops: bool = ..., alpha: _Optional[float] = ..., heat_time: _Optional[float] = ..., terms: _Optional[int] = ..., row_dtype: _Optional[_Union[RowDtype, str]] = ..., random_seed: _Optional[int] = ..., standardize: bool = ..., permute: bool = ...) -> None: ...
