import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Which cores share memory: the host's NUMA nodes, as the kernel lists them. */

const listed = '/sys/devices/system/node';

/** The node of each core; empty where all memory is one node's, or nobody says. */
export function numaNodes(folder = listed): ReadonlyMap<number, number> {
  const nodes = nodesIn(folder).flatMap((name) => {
    const cores = coresOf(join(folder, name, 'cpulist'));
    return cores.map((core) => [core, Number(name.slice('node'.length))] as const);
  });
  const isOne = new Set(nodes.map(([, node]) => node)).size <= 1;
  return new Map(isOne ? [] : nodes);
}

function nodesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder).filter((name) => /^node\d+$/.test(name));
  } catch {
    return [];
  }
}

/** `0-3,8,10-11`; a node of memory alone has none. */
function coresOf(path: string): readonly number[] {
  let text: string;
  try {
    text = readFileSync(path, 'utf8').trim();
  } catch {
    return [];
  }
  if (text === '') return [];
  return text.split(',').flatMap((part) => {
    const [first = 0, last = first] = part.split('-').map(Number);
    return Array.from({ length: last - first + 1 }, (_, index) => first + index);
  });
}
