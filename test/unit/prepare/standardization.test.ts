import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import type { ModelManifest, ModelOptions } from '../../../src/native/contract.ts';
import {
  foldMoments,
  foldProblem,
  momentsPath,
  readMoments,
} from '../../../src/prepare/standardization.ts';
import { modelOptions } from '../../support/model-options.ts';
import { forAll, type Random } from '../../support/random.ts';

/** Layer 0 written out in plain arithmetic, over standardised rows and over raw ones. */

type Vector = readonly number[];
type Matrix = readonly Vector[];

const model = modelOptions({ layers: 2, inDim: 3, hiddenDim: 4, outDim: 2, residual: true });

/** Tensors of layer 0 as ManifestOf lays them out, from 16 floats to 16 floats. */
function manifestOf(shapes: Readonly<Record<string, readonly number[]>>): ModelManifest {
  const tensors = Object.entries(shapes).map(([name, shape], i) => ({
    name: `convs.0.${name}`,
    shape,
    offset: 16 * i,
  }));
  return { tensors, numFloats: 16 * tensors.length, widths: [16, 16] };
}

const dot = (a: Vector, b: Vector) => a.reduce((sum, value, i) => sum + value * (b[i] ?? 0), 0);
const add = (...vectors: readonly Vector[]): Vector =>
  (vectors[0] ?? []).map((_, i) => vectors.reduce((sum, vector) => sum + (vector[i] ?? 0), 0));
const times = (matrix: Matrix, vector: Vector): Vector => matrix.map((row) => dot(row, vector));
const scale = (vector: Vector, factor: number): Vector => vector.map((value) => value * factor);

interface Layer {
  matrix(name: string): Matrix;
  vector(name: string): Vector;
}

function layerOf({ tensors }: ModelManifest, parameters: Float32Array): Layer {
  const of = (name: string) => {
    const tensor = tensors.find((candidate) => candidate.name === `convs.0.${name}`);
    if (tensor === undefined) throw new Error(`no tensor ${name}`);
    return tensor;
  };
  const vector = (name: string) => {
    const { offset, shape } = of(name);
    const floats = shape.reduce((product, size) => product * size, 1);
    return [...parameters.subarray(offset, offset + floats)];
  };
  return {
    vector,
    matrix(name) {
      const [rows = 0, columns = 0] = of(name).shape;
      const all = vector(name);
      return Array.from({ length: rows }, (_, r) => all.slice(r * columns, (r + 1) * columns));
    },
  };
}

const mean = (rows: Matrix, width: number): Vector =>
  rows.length === 0 ? Array(width).fill(0) : scale(add(...rows), 1 / rows.length);

function sage(layer: Layer, own: Vector, neighbours: Matrix): Vector {
  return add(
    times(layer.matrix('lin_l.weight'), mean(neighbours, 3)),
    layer.vector('lin_l.bias'),
    times(layer.matrix('lin_r.weight'), own),
    times(layer.matrix('res.weight'), own),
  );
}

function pinSage(layer: Layer, own: Vector, neighbours: Matrix): Vector {
  const projected = neighbours.map((row) =>
    add(times(layer.matrix('lin.weight'), row), layer.vector('lin.bias')).map((v) =>
      Math.max(0, v),
    ),
  );
  return add(
    times(layer.matrix('lin_l.weight'), mean(projected, 3)),
    layer.vector('lin_l.bias'),
    times(layer.matrix('lin_r.weight'), own),
    times(layer.matrix('res.weight'), own),
  );
}

function gatV2(layer: Layer, own: Vector, neighbours: Matrix): Vector {
  const left = (row: Vector) =>
    add(times(layer.matrix('lin_l.weight'), row), layer.vector('lin_l.bias'));
  const right = add(times(layer.matrix('lin_r.weight'), own), layer.vector('lin_r.bias'));
  const sources = [own, ...neighbours].map(left);
  const scores = sources.map((z) =>
    Math.exp(
      dot(
        layer.vector('att'),
        add(z, right).map((v) => (v > 0 ? v : 0.2 * v)),
      ),
    ),
  );
  const all = scores.reduce((sum, score) => sum + score, 0);
  return add(
    ...sources.map((z, i) => scale(z, (scores[i] ?? 0) / all)),
    times(layer.matrix('res.weight'), own),
    layer.vector('bias'),
  );
}

const cases = [
  {
    type: 'GRAPHSAGE',
    run: sage,
    shapes: {
      'lin_l.weight': [4, 3],
      'lin_l.bias': [4],
      'lin_r.weight': [4, 3],
      'res.weight': [4, 3],
    },
  },
  {
    type: 'PINSAGE',
    run: pinSage,
    shapes: {
      'lin.weight': [3, 3],
      'lin.bias': [3],
      'lin_l.weight': [4, 3],
      'lin_l.bias': [4],
      'lin_r.weight': [4, 3],
      'res.weight': [4, 3],
    },
  },
  {
    type: 'GATV2',
    run: gatV2,
    shapes: {
      att: [1, 1, 4],
      bias: [4],
      'lin_l.weight': [4, 3],
      'lin_l.bias': [4],
      'lin_r.weight': [4, 3],
      'lin_r.bias': [4],
      'res.weight': [4, 3],
    },
  },
] as const;

function numbers(random: Random, count: number, size: number): number[] {
  return Array.from({ length: count }, () => (random.unit() - 0.5) * size);
}

test.each(cases)('$type folded gives for raw rows what it gave for standardised ones', (kind) => {
  const { type, run, shapes } = kind;
  const manifest = manifestOf(shapes);
  forAll(50, (random) => {
    const parameters = Float32Array.from(numbers(random, manifest.numFloats, 2));
    const moments = {
      mean: Float64Array.from(numbers(random, 3, 20)),
      deviation: Float64Array.from(numbers(random, 3, 10).map((value) => Math.abs(value) + 0.1)),
    };
    const folded = foldMoments({ ...model, type }, manifest, parameters, moments);
    const before = layerOf(manifest, parameters);
    const after = layerOf(manifest, folded);
    const raw = () => numbers(random, 3, 40);
    const standardized = (row: Vector) =>
      row.map((v, i) => (v - (moments.mean[i] ?? 0)) / (moments.deviation[i] ?? 1));
    // GraphSAGE's mean of no neighbours is 0, whatever the rows are: one that has some.
    const count = random.integer(type === 'GRAPHSAGE' ? 1 : 0, 4);
    const [own, rows] = [raw(), Array.from({ length: count }, raw)];
    const expected = run(before, standardized(own), rows.map(standardized));
    const found = run(after, own, rows);
    expected.forEach((value, i) => {
      const size = 1 + Math.abs(value);
      expect(Math.abs((found[i] ?? Number.NaN) - value) / size).toBeLessThan(2e-4);
    });
  });
});

test('what cannot be folded says why, and padding stays as it is', () => {
  const problem = (change: Partial<ModelOptions>) => foldProblem({ ...model, ...change });
  expect(problem({})).toBe(null);
  expect(problem({ type: 'PINSAGE', residual: false })).toBe(null);
  expect(problem({ type: 'GATV2', hiddenDim: 3 })).toBe(null);
  expect(problem({ hiddenDim: 3 })).toContain('residual');
  expect(problem({ layers: 1, outDim: 3 })).toContain('residual');
  for (const type of ['SGC', 'SIGN', 'HOGA'] as const) {
    expect(problem({ type })).toContain('propagated');
  }
  expect(problem({ type: 'GCN' })).toContain('degrees');
  expect(problem({ type: 'GAT' })).toContain('no bias');
  expect(problem({ type: 'TORCHSCRIPT' })).toContain('your');
  const manifest = manifestOf({
    'lin_l.weight': [1, 1],
    'lin_l.bias': [1],
    'lin_r.weight': [1, 1],
  });
  const moments = { mean: Float64Array.of(10), deviation: Float64Array.of(2) };
  const parameters = new Float32Array(manifest.numFloats).fill(4);
  const folded = foldMoments({ ...model, inDim: 1 }, manifest, parameters, moments);
  expect([folded[0], folded[16], folded[32]]).toEqual([2, 4 - 2 * 10 - 2 * 10, 2]);
  expect([...folded].filter((value) => value === 4)).toHaveLength(manifest.numFloats - 3);
});

test('moments are read where the native code leaves them, and only whole', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'gnnd-moments-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const features = join(folder, 'x-standardized.npy');
  writeFileSync(momentsPath(features), Buffer.from(Float64Array.of(1, 2, 3, 4).buffer));
  const { mean, deviation } = await readMoments(features, 2);
  expect([[...mean], [...deviation]]).toEqual([
    [1, 2],
    [3, 4],
  ]);
  await expect(readMoments(features, 3)).rejects.toThrow('has 32 bytes, expected 48');
});
