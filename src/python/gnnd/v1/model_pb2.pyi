from gnnd.v1 import field_pb2 as _field_pb2
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ModelType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    MODEL_TYPE_UNSPECIFIED: _ClassVar[ModelType]
    MODEL_TYPE_GRAPHSAGE: _ClassVar[ModelType]
    MODEL_TYPE_GCN: _ClassVar[ModelType]
    MODEL_TYPE_GAT: _ClassVar[ModelType]
    MODEL_TYPE_GATV2: _ClassVar[ModelType]
    MODEL_TYPE_PINSAGE: _ClassVar[ModelType]
    MODEL_TYPE_TORCHSCRIPT: _ClassVar[ModelType]
    MODEL_TYPE_SGC: _ClassVar[ModelType]
    MODEL_TYPE_SIGN: _ClassVar[ModelType]
    MODEL_TYPE_HOGA: _ClassVar[ModelType]

class ModelVariant(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    MODEL_VARIANT_UNSPECIFIED: _ClassVar[ModelVariant]
    MODEL_VARIANT_NONE: _ClassVar[ModelVariant]
    MODEL_VARIANT_FUSED: _ClassVar[ModelVariant]
    MODEL_VARIANT_CONCAT: _ClassVar[ModelVariant]
    MODEL_VARIANT_GATED: _ClassVar[ModelVariant]
    MODEL_VARIANT_DAC24: _ClassVar[ModelVariant]

class Activation(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ACTIVATION_UNSPECIFIED: _ClassVar[Activation]
    ACTIVATION_RELU: _ClassVar[Activation]
    ACTIVATION_ELU: _ClassVar[Activation]
    ACTIVATION_LEAKY_RELU: _ClassVar[Activation]

class Normalization(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    NORMALIZATION_UNSPECIFIED: _ClassVar[Normalization]
    NORMALIZATION_NONE: _ClassVar[Normalization]
    NORMALIZATION_L2: _ClassVar[Normalization]
    NORMALIZATION_LAYER: _ClassVar[Normalization]
MODEL_TYPE_UNSPECIFIED: ModelType
MODEL_TYPE_GRAPHSAGE: ModelType
MODEL_TYPE_GCN: ModelType
MODEL_TYPE_GAT: ModelType
MODEL_TYPE_GATV2: ModelType
MODEL_TYPE_PINSAGE: ModelType
MODEL_TYPE_TORCHSCRIPT: ModelType
MODEL_TYPE_SGC: ModelType
MODEL_TYPE_SIGN: ModelType
MODEL_TYPE_HOGA: ModelType
MODEL_VARIANT_UNSPECIFIED: ModelVariant
MODEL_VARIANT_NONE: ModelVariant
MODEL_VARIANT_FUSED: ModelVariant
MODEL_VARIANT_CONCAT: ModelVariant
MODEL_VARIANT_GATED: ModelVariant
MODEL_VARIANT_DAC24: ModelVariant
ACTIVATION_UNSPECIFIED: Activation
ACTIVATION_RELU: Activation
ACTIVATION_ELU: Activation
ACTIVATION_LEAKY_RELU: Activation
NORMALIZATION_UNSPECIFIED: Normalization
NORMALIZATION_NONE: Normalization
NORMALIZATION_L2: Normalization
NORMALIZATION_LAYER: Normalization

class ModelScriptSpec(_message.Message):
    __slots__ = ("path", "sha256")
    PATH_FIELD_NUMBER: _ClassVar[int]
    SHA256_FIELD_NUMBER: _ClassVar[int]
    path: str
    sha256: str
    def __init__(self, path: _Optional[str] = ..., sha256: _Optional[str] = ...) -> None: ...

class ModelSpec(_message.Message):
    __slots__ = ("type", "layers", "hidden_dim", "dropout", "input_dropout", "heads", "activation", "normalization", "residual", "attention_dropout", "script", "variant", "hop_layers", "hop_hidden_dim")
    TYPE_FIELD_NUMBER: _ClassVar[int]
    LAYERS_FIELD_NUMBER: _ClassVar[int]
    HIDDEN_DIM_FIELD_NUMBER: _ClassVar[int]
    DROPOUT_FIELD_NUMBER: _ClassVar[int]
    INPUT_DROPOUT_FIELD_NUMBER: _ClassVar[int]
    HEADS_FIELD_NUMBER: _ClassVar[int]
    ACTIVATION_FIELD_NUMBER: _ClassVar[int]
    NORMALIZATION_FIELD_NUMBER: _ClassVar[int]
    RESIDUAL_FIELD_NUMBER: _ClassVar[int]
    ATTENTION_DROPOUT_FIELD_NUMBER: _ClassVar[int]
    SCRIPT_FIELD_NUMBER: _ClassVar[int]
    VARIANT_FIELD_NUMBER: _ClassVar[int]
    HOP_LAYERS_FIELD_NUMBER: _ClassVar[int]
    HOP_HIDDEN_DIM_FIELD_NUMBER: _ClassVar[int]
    type: ModelType
    layers: int
    hidden_dim: int
    dropout: float
    input_dropout: float
    heads: int
    activation: Activation
    normalization: Normalization
    residual: bool
    attention_dropout: float
    script: ModelScriptSpec
    variant: ModelVariant
    hop_layers: int
    hop_hidden_dim: int
    def __init__(self, type: _Optional[_Union[ModelType, str]] = ..., layers: _Optional[int] = ..., hidden_dim: _Optional[int] = ..., dropout: _Optional[float] = ..., input_dropout: _Optional[float] = ..., heads: _Optional[int] = ..., activation: _Optional[_Union[Activation, str]] = ..., normalization: _Optional[_Union[Normalization, str]] = ..., residual: bool = ..., attention_dropout: _Optional[float] = ..., script: _Optional[_Union[ModelScriptSpec, _Mapping]] = ..., variant: _Optional[_Union[ModelVariant, str]] = ..., hop_layers: _Optional[int] = ..., hop_hidden_dim: _Optional[int] = ...) -> None: ...
