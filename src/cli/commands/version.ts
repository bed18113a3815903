import type { Command } from 'commander';
import { stringify } from 'yaml';
import { HostService } from '../../api/gen/gnnd/v1/host_service_pb.ts';
import { gnnctlExit } from '../../base/exit-codes.ts';
import { packageVersion } from '../../base/package-version.ts';
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
  const versions: Record<string, string> = { gnnctl: packageVersion() };
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
