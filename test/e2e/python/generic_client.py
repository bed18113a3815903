"""A client that knows nothing of gnnd: it asks the server for services, messages and methods.

usage: generic_client.py ADDRESS SERVICE METHOD JSON     prints one JSON object
"""

import json
import sys

import grpc
from google.protobuf import json_format
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import (
    ProtoReflectionDescriptorDatabase,
)

CALL_SECONDS = 30


def call(channel, pool, service, method, request):
    described = pool.FindServiceByName(service).FindMethodByName(method)
    invoke = channel.unary_unary(
        f"/{service}/{method}",
        request_serializer=lambda message: message.SerializeToString(),
        response_deserializer=GetMessageClass(described.output_type).FromString,
    )
    message = json_format.ParseDict(request, GetMessageClass(described.input_type)())
    return json_format.MessageToDict(invoke(message, timeout=CALL_SECONDS), descriptor_pool=pool)


def told(pool, message):
    """What fields of a message say of themselves: their option gnnd.v1.field."""
    extension = pool.FindExtensionByName("gnnd.v1.field")
    options_class = GetMessageClass(pool.FindMessageTypeByName("google.protobuf.FieldOptions"))
    options = {
        field.name: options_class.FromString(field.GetOptions().SerializeToString())
        for field in pool.FindMessageTypeByName(message).fields
    }
    return {
        name: json_format.MessageToDict(each.Extensions[extension], descriptor_pool=pool)
        for name, each in options.items()
    }


def main(address, service, method, request):
    with grpc.insecure_channel(address) as channel:
        database = ProtoReflectionDescriptorDatabase(channel)
        pool = DescriptorPool(database)
        services = list(database.get_services())
        methods = {name: pool.FindServiceByName(name).methods_by_name.keys() for name in services}
        seen = {
            "services": sorted(services),
            "methods": {name: sorted(keys) for name, keys in methods.items()},
            "fields": told(pool, "gnnd.v1.OptimizerSpec"),
            "response": call(channel, pool, service, method, json.loads(request)),
        }
    print(json.dumps(seen))


if __name__ == "__main__":
    main(*sys.argv[1:])
