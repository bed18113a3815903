import { existsSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { output } from './daemon.mjs';

// Graphs of benchmarks, which bench/peers/graphs.py makes or finds in $GNND_DATASETS.

/** The Python that set-up found: it has numpy. */
const python = () => process.env.GNND_PYTHON ?? readFileSync('build/python.txt', 'utf8').trim();

/** A dataset to import: the file of a graph that tests have, else a folder of .npy files. */
export function datasetFolder(name) {
  const fixture = `test/fixtures/${name}.npz`;
  if (existsSync(fixture)) return resolve(fixture);
  return output(python(), ['bench/peers/graphs.py', '--dataset', name]);
}

/** A graph with what contestants need of it beside the dataset: seeds and edge weights. */
export function graphFolder(name) {
  return output(python(), ['bench/peers/graphs.py', name]);
}
