import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { output } from './daemon.mjs';

const folder = join('build', 'bench', 'datasets');

/** Nodes of synth.py's graphs. */
const synthetic = { 'citation-60k': 60_000, 'citation-500k': 500_000 };

/** A graph of synth.py; needs numpy. */
function synthesized(made, nodes) {
  const synth = join(process.env.GNND_SHARED ?? '../shared', 'data', 'synth.py');
  const args = [synth, 'citation', made, '--nodes', String(nodes)];
  output(process.env.GNND_PYTHON ?? 'python3', args);
  return made;
}

/**
 * The folder of one of the shared data sets, unpacked where it is not there. They lie in
 * $GNND_SHARED, else in ../shared beside the clone.
 */
export function datasetFolder(dataset) {
  const made = join(folder, dataset);
  if (existsSync(join(made, 'meta.json'))) return made;
  const nodes = synthetic[dataset];
  if (nodes !== undefined) return synthesized(made, nodes);
  const unpack = join(process.env.GNND_SHARED ?? '../shared', 'data', 'unpack.py');
  if (!existsSync(unpack)) throw new Error(`${unpack} is missing: name its folder in GNND_SHARED`);
  process.stderr.write(`unpacking ${dataset}\n`);
  output(process.env.GNND_PYTHON ?? 'python3', [unpack, folder, dataset]);
  return made;
}
