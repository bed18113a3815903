import { create, type DescExtension, type DescFile, toBinary } from '@bufbuild/protobuf';
import { FileDescriptorProtoSchema } from '@bufbuild/protobuf/wkt';
import { status } from '@grpc/grpc-js';
import {
  type ServerReflection,
  type ServerReflectionRequest,
  type ServerReflectionResponse,
  ServerReflectionResponseSchema,
} from './gen/grpc/reflection/v1/reflection_pb.ts';
import type { Handlers, MethodsOf } from './rpc.ts';

/**
 * Server reflection from the descriptors in the generated code. The messages of v1 and v1alpha are
 * the same on the wire, so both are served by these handlers.
 */
export const reflectionAlphaName = 'grpc.reflection.v1alpha.ServerReflection';

type Answer = ServerReflectionResponse['messageResponse'];

export function createReflection(
  files: readonly DescFile[],
): Handlers<MethodsOf<typeof ServerReflection>> {
  const all = closure(files);
  const byName = new Map(all.map((file) => [file.proto.name, file]));
  const bySymbol = new Map(all.flatMap((file) => symbolsOf(file).map((name) => [name, file])));
  const extensions = all.flatMap((file) => file.extensions);
  const services = files.flatMap((file) => file.services.map((service) => service.typeName));

  const answer = (request: ServerReflectionRequest['messageRequest']): Answer => {
    switch (request.case) {
      case 'listServices':
        return create(ServerReflectionResponseSchema, {
          messageResponse: {
            case: 'listServicesResponse',
            value: { service: services.map((name) => ({ name })) },
          },
        }).messageResponse;
      case 'fileByFilename':
        return fileAnswer(byName.get(request.value), request.value);
      case 'fileContainingSymbol':
        return fileAnswer(findSymbol(bySymbol, request.value), request.value);
      case 'fileContainingExtension': {
        const { containingType: extended, extensionNumber } = request.value;
        const found = extensions.find(
          ({ number, extendee }) => number === extensionNumber && extendee.typeName === extended,
        );
        return fileAnswer(found?.file, `extension ${extensionNumber} of ${extended}`);
      }
      case 'allExtensionNumbersOfType':
        return numbersAnswer(extensions, request.value);
      case undefined:
        return errorAnswer(status.INVALID_ARGUMENT, 'the request asks for nothing');
    }
  };

  return {
    async *serverReflectionInfo(requests) {
      for await (const request of requests) {
        yield create(ServerReflectionResponseSchema, {
          validHost: request.host,
          originalRequest: request,
          messageResponse: answer(request.messageRequest),
        });
      }
    },
  };
}

/** The files and all they import, imports first. */
function closure(files: readonly DescFile[]): readonly DescFile[] {
  const found = new Set<DescFile>();
  const visit = (file: DescFile) => {
    if (found.has(file)) return;
    file.dependencies.forEach(visit);
    found.add(file);
  };
  files.forEach(visit);
  return [...found];
}

function symbolsOf(file: DescFile): readonly string[] {
  const symbols = [...file.messages, ...file.enums, ...file.services, ...file.extensions];
  return symbols.map((symbol) => symbol.typeName);
}

/** Nested types, methods and fields lie in the file of the first known part of their name. */
function findSymbol(bySymbol: ReadonlyMap<string, DescFile>, symbol: string): DescFile | undefined {
  for (let name = symbol; name !== ''; name = name.slice(0, Math.max(0, name.lastIndexOf('.')))) {
    const file = bySymbol.get(name);
    if (file !== undefined) return file;
  }
  return undefined;
}

function fileAnswer(file: DescFile | undefined, asked: string): Answer {
  if (file === undefined) return notFound(`${asked} is not served`);
  const fileDescriptorProto = closure([file]).map((each) =>
    toBinary(FileDescriptorProtoSchema, each.proto),
  );
  return create(ServerReflectionResponseSchema, {
    messageResponse: { case: 'fileDescriptorResponse', value: { fileDescriptorProto } },
  }).messageResponse;
}

function numbersAnswer(extensions: readonly DescExtension[], baseTypeName: string): Answer {
  const extensionNumber = extensions
    .filter(({ extendee }) => extendee.typeName === baseTypeName)
    .map(({ number }) => number);
  if (extensionNumber.length === 0) return notFound(`${baseTypeName} has no extensions`);
  return create(ServerReflectionResponseSchema, {
    messageResponse: {
      case: 'allExtensionNumbersResponse',
      value: { baseTypeName, extensionNumber },
    },
  }).messageResponse;
}

function notFound(message: string): Answer {
  return errorAnswer(status.NOT_FOUND, message);
}

function errorAnswer(errorCode: status, errorMessage: string): Answer {
  return create(ServerReflectionResponseSchema, {
    messageResponse: { case: 'errorResponse', value: { errorCode, errorMessage } },
  }).messageResponse;
}
