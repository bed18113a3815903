// The Python package's stubs, made from all protos by grpc_tools.protoc, whose version decides
// which grpcio and protobuf can read them: set-up's, of test/e2e/python/requirements.txt.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../', import.meta.url));
const python = join(root, '.cache/python-client/bin/python');

/** Whether set-up could get grpc_tools. */
export const canMakePython = existsSync(python);

/** Writes gnnd/v1 below `folder`. */
export function makePython(folder) {
  const protos = join(root, 'proto');
  const made = join(folder, 'gnnd', 'v1');
  mkdirSync(made, { recursive: true });
  const files = readdirSync(join(protos, 'gnnd', 'v1')).sort();
  const paths = files.map((name) => `gnnd/v1/${name}`);
  const services = paths.filter((path) => path.endsWith('_service.proto'));
  const protoc = (...args) =>
    execFileSync(python, ['-m', 'grpc_tools.protoc', `-I${protos}`, ...args], { stdio: 'inherit' });
  protoc(`--python_out=${folder}`, `--pyi_out=${folder}`, ...paths);
  protoc(`--grpc_python_out=${folder}`, ...services);
  // Errors' details as data: modules of these names belong to another package of many environments.
  const details = `--descriptor_set_out=${join(made, 'error_details.binpb')}`;
  protoc('--include_imports', details, 'google/rpc/status.proto', 'google/rpc/error_details.proto');
}
