import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Command } from 'commander';
import { stringify } from 'yaml';
import { HostService } from '../../api/gen/gnnd/v1/host_service_pb.ts';
import { gnnctlExit } from '../../base/exit-codes.ts';
import { packageRoot } from '../../base/package-root.ts';
import type { Run } from '../session/run.ts';
import type { Session } from '../session/session.ts';

/** `gnnctl version`. */
export function addVersion(program: Command, run: Run): void {
  program
    .command('version')
    .description('print the version of gnnctl')
    .option('--server', 'and that of the daemon')
    .action(run(printVersion));
}

async function printVersion(
  session: Session,
  flags: { readonly server?: boolean },
): Promise<number> {
  const versions: Record<string, string> = { gnnctl: clientVersion() };
  if (flags.server === true) {
    versions['gnnd'] = (await session.call(HostService.method.getHost, {})).version;
  }
  switch (session.format) {
    case 'json':
    case 'jsonl':
      session.print(JSON.stringify(versions));
      break;
    case 'yaml':
      session.print(stringify(versions));
      break;
    default:
      for (const [name, version] of Object.entries(versions)) session.print(`${name} ${version}`);
  }
  return gnnctlExit.OK;
}

/** Version of this package. */
export function clientVersion(): string {
  const manifest: unknown = JSON.parse(readFileSync(join(packageRoot, 'package.json'), 'utf8'));
  const isManifest = typeof manifest === 'object' && manifest !== null && 'version' in manifest;
  return isManifest ? String(manifest.version) : 'unknown';
}
