import type { Command } from 'commander';
import {
  CollectGarbageResponseSchema,
  type GarbageItem,
  GarbageItemSchema,
  GarbageKindSchema,
  HostService,
} from '../../api/gen/gnnd/v1/host_service_pb.ts';
import { gnnctlExit } from '../../base/exit-codes.ts';
import { counted } from '../../spec/counted.ts';
import { shortName } from '../../spec/enum-names.ts';
import type { Run } from '../session/run.ts';
import type { Session } from '../session/session.ts';
import { printable } from '../session/terminal.ts';
import { formatBytes } from '../session/units.ts';
import { type Column, printList } from '../show/output.ts';

/** `gnnctl gc`. */
export function addGc(program: Command, run: Run): void {
  program
    .command('gc')
    .description("remove now what the daemon's limits no longer keep")
    .option('--dry-run', 'remove nothing, show what would go, and why')
    .action(run(collectGarbage));
}

/** Thousands of jobs take a while. */
const timeoutMs = 10 * 60_000;

async function collectGarbage(
  session: Session,
  flags: { readonly dryRun?: boolean },
): Promise<number> {
  const dryRun = flags.dryRun === true;
  const { collectGarbage: method } = HostService.method;
  const limit = { timeoutMs: session.timeoutMs ?? timeoutMs };
  const answer = await session.client.unary(method, { dryRun }, limit);
  printList(session, {
    schema: CollectGarbageResponseSchema,
    message: answer,
    rowSchema: GarbageItemSchema,
    rows: answer.items,
    columns,
    nameOf: ({ name }) => name,
  });
  const things = counted(answer.itemCount, 'thing');
  const total = `${things}, ${formatBytes(Number(answer.bytes))}`;
  if (answer.itemCount === 0n) session.say('nothing is beyond its limit');
  else session.say(dryRun ? `${total}; nothing was removed` : `removed ${total}`);
  if (answer.orphans.length > 0) session.say(orphansText(answer.orphans));
  return gnnctlExit.OK;
}

/** Their checkpoints may be all that is left of jobs: people decide. */
function orphansText(folders: readonly string[]): string {
  const head =
    `${counted(folders.length, 'folder')} of jobs that the store does not know ` +
    '(was gnnd.db replaced?); remove by hand what is not wanted:';
  return [head, ...folders.map((folder) => `  ${folder}`)].join('\n');
}

const columns: readonly Column<GarbageItem>[] = [
  { title: 'KIND', shown: ({ kind }) => shortName(GarbageKindSchema, kind) },
  { title: 'NAME', shown: ({ name }) => printable(name) },
  {
    title: 'SIZE',
    shown: ({ bytes }) => formatBytes(Number(bytes)),
    plain: ({ bytes }) => String(bytes),
  },
  { title: 'WHY', shown: ({ reason }) => printable(reason) },
];
