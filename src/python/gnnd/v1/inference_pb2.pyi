from gnnd.v1 import field_pb2 as _field_pb2
from gnnd.v1 import types_pb2 as _types_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class JobKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    JOB_KIND_UNSPECIFIED: _ClassVar[JobKind]
    JOB_KIND_TRAINING: _ClassVar[JobKind]
    JOB_KIND_INFERENCE: _ClassVar[JobKind]

class InferenceParameters(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    INFERENCE_PARAMETERS_UNSPECIFIED: _ClassVar[InferenceParameters]
    INFERENCE_PARAMETERS_BEST: _ClassVar[InferenceParameters]
    INFERENCE_PARAMETERS_LAST: _ClassVar[InferenceParameters]

class InferenceNodes(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    INFERENCE_NODES_UNSPECIFIED: _ClassVar[InferenceNodes]
    INFERENCE_NODES_ALL: _ClassVar[InferenceNodes]
    INFERENCE_NODES_TRAINING: _ClassVar[InferenceNodes]
    INFERENCE_NODES_VALIDATION: _ClassVar[InferenceNodes]
    INFERENCE_NODES_TEST: _ClassVar[InferenceNodes]
    INFERENCE_NODES_LISTED: _ClassVar[InferenceNodes]

class InferenceOutput(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    INFERENCE_OUTPUT_UNSPECIFIED: _ClassVar[InferenceOutput]
    INFERENCE_OUTPUT_LOGITS: _ClassVar[InferenceOutput]
    INFERENCE_OUTPUT_PROBABILITIES: _ClassVar[InferenceOutput]

class InferenceFormat(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    INFERENCE_FORMAT_UNSPECIFIED: _ClassVar[InferenceFormat]
    INFERENCE_FORMAT_NPY: _ClassVar[InferenceFormat]
    INFERENCE_FORMAT_PARQUET: _ClassVar[InferenceFormat]
    INFERENCE_FORMAT_CSV: _ClassVar[InferenceFormat]
JOB_KIND_UNSPECIFIED: JobKind
JOB_KIND_TRAINING: JobKind
JOB_KIND_INFERENCE: JobKind
INFERENCE_PARAMETERS_UNSPECIFIED: InferenceParameters
INFERENCE_PARAMETERS_BEST: InferenceParameters
INFERENCE_PARAMETERS_LAST: InferenceParameters
INFERENCE_NODES_UNSPECIFIED: InferenceNodes
INFERENCE_NODES_ALL: InferenceNodes
INFERENCE_NODES_TRAINING: InferenceNodes
INFERENCE_NODES_VALIDATION: InferenceNodes
INFERENCE_NODES_TEST: InferenceNodes
INFERENCE_NODES_LISTED: InferenceNodes
INFERENCE_OUTPUT_UNSPECIFIED: InferenceOutput
INFERENCE_OUTPUT_LOGITS: InferenceOutput
INFERENCE_OUTPUT_PROBABILITIES: InferenceOutput
INFERENCE_FORMAT_UNSPECIFIED: InferenceFormat
INFERENCE_FORMAT_NPY: InferenceFormat
INFERENCE_FORMAT_PARQUET: InferenceFormat
INFERENCE_FORMAT_CSV: InferenceFormat

class InferenceSpec(_message.Message):
    __slots__ = ("job", "path", "parameters", "nodes", "nodes_file", "outputs", "formats", "parameters_sha256", "classes", "trained_on", "node_ids", "task")
    JOB_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    NODES_FILE_FIELD_NUMBER: _ClassVar[int]
    OUTPUTS_FIELD_NUMBER: _ClassVar[int]
    FORMATS_FIELD_NUMBER: _ClassVar[int]
    PARAMETERS_SHA256_FIELD_NUMBER: _ClassVar[int]
    CLASSES_FIELD_NUMBER: _ClassVar[int]
    TRAINED_ON_FIELD_NUMBER: _ClassVar[int]
    NODE_IDS_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    job: str
    path: str
    parameters: InferenceParameters
    nodes: InferenceNodes
    nodes_file: str
    outputs: _containers.RepeatedScalarFieldContainer[InferenceOutput]
    formats: _containers.RepeatedScalarFieldContainer[InferenceFormat]
    parameters_sha256: str
    classes: int
    trained_on: str
    node_ids: _containers.RepeatedScalarFieldContainer[str]
    task: _types_pb2.DatasetTask
    def __init__(self, job: _Optional[str] = ..., path: _Optional[str] = ..., parameters: _Optional[_Union[InferenceParameters, str]] = ..., nodes: _Optional[_Union[InferenceNodes, str]] = ..., nodes_file: _Optional[str] = ..., outputs: _Optional[_Iterable[_Union[InferenceOutput, str]]] = ..., formats: _Optional[_Iterable[_Union[InferenceFormat, str]]] = ..., parameters_sha256: _Optional[str] = ..., classes: _Optional[int] = ..., trained_on: _Optional[str] = ..., node_ids: _Optional[_Iterable[str]] = ..., task: _Optional[_Union[_types_pb2.DatasetTask, str]] = ...) -> None: ...
