import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { output } from './daemon.mjs';

const folder = join('build', 'bench', 'datasets');

/** synth.py's graph of 500,000 nodes; needs numpy. */
function synthesized(made) {
  const synth = join(process.env.GNND_SHARED ?? '../shared', 'data', 'synth.py');
  const args = [synth, 'citation', made, '--nodes', '500000'];
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
  if (dataset === 'citation-500k') return synthesized(made);
  const unpack = join(process.env.GNND_SHARED ?? '../shared', 'data', 'unpack.py');
  if (!existsSync(unpack)) throw new Error(`${unpack} is missing: name its folder in GNND_SHARED`);
  process.stderr.write(`unpacking ${dataset}\n`);
  output(process.env.GNND_PYTHON ?? 'python3', [unpack, folder, dataset]);
  return made;
}
