import {
  type InferencePlan,
  type MemoryPlan,
  type RowPlan,
  RowTier,
} from '../../api/gen/gnnd/v1/memory_plan_pb.ts';
import { TopologySource } from '../../api/gen/gnnd/v1/resources_pb.ts';
import { counted } from '../../spec/counted.ts';
import { printable } from '../session/terminal.ts';
import { formatBytes } from '../session/units.ts';

/** What a job is predicted to take of the host's memory, for people. */

const size = (bytes: bigint) => formatBytes(Number(bytes));

/** `2.1 GiB to 3.4 GiB of the host's 23.5 GiB`. */
export function memorySummary({ surelyBytes, atMostBytes, hostBytes }: MemoryPlan): string {
  const tight = atMostBytes > hostBytes ? '; the largest batches may not fit' : '';
  return `${size(surelyBytes)} to ${size(atMostBytes)} of the host's ${size(hostBytes)}${tight}`;
}

/** Text for jobs whose batches are propagated rows. */
const rowsInstead = 'none, rows are read instead';

export function topologyText({ topology, topologyBytes }: MemoryPlan): string {
  if (topologyBytes === 0n) return rowsInstead;
  const isCopied = topology === TopologySource.MEMORY;
  const where = isCopied ? 'copied into memory' : "mapped from the dataset's files";
  return `${size(topologyBytes)}, ${where}`;
}

export function featuresText({
  featuresBytes,
  featuresOnDisk,
  readAheadBytes,
}: MemoryPlan): string {
  if (featuresBytes === 0n) return rowsInstead;
  const where = featuresOnDisk
    ? `read from disk behind the cache, ${size(readAheadBytes)} ahead`
    : 'in the page cache';
  return `${size(featuresBytes)}, mapped: ${where}`;
}

const tiers: Readonly<Record<RowTier, string>> = {
  [RowTier.UNSPECIFIED]: '',
  [RowTier.DEVICE]: "in devices' memory",
  [RowTier.HOST]: 'mapped, in the page cache',
  [RowTier.DISK]: 'read from disk, past the page cache',
};

/** `1.2 GiB, mapped, in the page cache; best shuffled with row_chunk 1: ...`. */
export function rowsText({ bytes, tier, chunk, reason, refused }: RowPlan): string {
  const where = `${size(bytes)}, ${tiers[tier] ?? ''}`;
  const why = [reason, ...refused].map(printable).join('; ');
  return `${where}; best shuffled with row_chunk ${chunk}: ${why}`;
}

/** `1000 nodes in at most 4 chunks; 1.1 MiB of files, 4.7 GiB beside them ...`. */
export function inferencePlanText(plan: InferencePlan): string {
  const { nodes, chunks, outputBytes, scratchBytes, propagationBytes } = plan;
  const beside = scratchBytes + propagationBytes;
  const meanwhile = beside === 0n ? '' : `, ${size(beside)} beside them on the disk meanwhile`;
  const what = nodes === 0n ? 'the pairs of a file' : counted(nodes, 'node');
  const predicted = `${what} in at most ${counted(chunks, 'chunk')}`;
  const files = nodes === 0n ? '' : `; ${size(outputBytes)} of files`;
  return `${predicted}${files}${meanwhile}`;
}

/** Line about pinned rows, for jobs on devices that have memory of their own. */
function pinnedLines({ pinnedRows, pinnedExplanation }: MemoryPlan): readonly string[] {
  if (pinnedExplanation === '') return [];
  const rows =
    pinnedRows === 0n ? '' : `${counted(pinnedRows, 'row')} that devices read by themselves, `;
  return [`  pinned ${rows}${printable(pinnedExplanation)}`];
}

/** A line a part, the largest first. */
export function memoryLines(plan: MemoryPlan): readonly string[] {
  const parts = [...plan.parts].sort((a, b) => Number(b.bytes - a.bytes));
  return [
    `memory: ${memorySummary(plan)}`,
    `  topology ${topologyText(plan)}`,
    `  features ${featuresText(plan)}`,
    ...pinnedLines(plan),
    ...(plan.rows === undefined ? [] : [`  rows ${rowsText(plan.rows)}`]),
    ...(plan.inference === undefined ? [] : [`inference: ${inferencePlanText(plan.inference)}`]),
    ...parts
      .filter(({ bytes }) => bytes > 0n)
      .map(({ name, bytes, bound, field }) => {
        const by = field === '' ? '' : ` (${printable(field)})`;
        return `  ${bound ? 'at most ' : ''}${size(bytes)} for ${printable(name)}${by}`;
      }),
  ];
}
