import { expect, test } from 'vitest';
import { readSpec } from '../../../src/cli/read/spec-file.ts';
import { foreignFields } from '../../../src/cli/read/spec-hints.ts';

/** What is said of the last line of a file. */
function saidOf(text: string): string {
  const reading = readSpec({ file: 'job.yaml', text });
  if ('ok' in reading) throw new Error(`${text}: accepted`);
  return reading.problems.map(({ description }) => description).join(' | ');
}

test.each([
  ['training: {lr: 0.1}', 'spec.training.optimizer.learning_rate'],
  ['training: {optimizer: {lr: 0.1}}', 'learning_rate'],
  ['lr: 0.1', 'spec.training.optimizer.learning_rate'],
  ['sampling: {num_neighbors: [10]}', 'fanouts'],
  ['num_neighbors: [15, 10]', 'spec.sampling.fanouts'],
  ['model: {hidden_channels: 64}', 'hidden_dim'],
  ['model: {hiddenChannels: 64}', 'hidden_dim'],
  ['model: {num_layers: 2}', 'layers'],
  ['model: {num_bases: 2}', 'bases'],
  ['edge_types: [cites]', 'spec.relations.only'],
  ['training: {num_epochs: 2}', 'epochs'],
  ['training: {seed: 3}', 'random_seed'],
  ['metrics: [accuracy]', 'spec.evaluation.metric'],
  ['training: {patience: 3}', 'spec.training.early_stop.patience_epochs'],
])('%s means %s', (text, meant) => {
  expect(saidOf(text)).toBe(`unknown key; did you mean ${meant}?`);
});

test.each([
  ['objective: link_prediction', 'spec.task LINKS learns links'],
  [
    'training: {loss: mse}',
    'belongs to the dataset (gnnctl dataset import SOURCE --task regression',
  ],
  ['pretrained: true', 'gnnctl job create --from'],
  ['model: {aggr: sum}', 'GRAPHSAGE takes the mean'],
  ['model: {edge_dim: 4}', 'no edge features'],
  ['num_classes: 7', 'follows from the dataset'],
  ['resources: {gpus: 2}', 'resources.devices'],
])('%s is not there, and what is said leads on', (text, said) => {
  expect(saidOf(text)).toContain(said);
  expect(saidOf(text)).not.toContain('did you mean');
});

test.each([
  ['model: {type: SAGE}', '; did you mean GRAPHSAGE?'],
  ['model: {type: GCNConv}', '; did you mean GCN?'],
  ['model: {type: APPNP}', '; not there; a model of yours'],
  ['model: {type: HAN}', '; not there; nearest is HGT'],
  ['model: {type: RGCNConv}', '; did you mean RGCN?'],
  ['model: {normalization: batch_norm}', '; not there; nearest is LAYER'],
  ['sampling: {algorithm: uniform}', '; did you mean KHOP_UNIFORM?'],
  ['training: {optimizer: {type: RMSprop}}', '; not there; nearest is ADAM'],
  ['model: {type: SGConv}', '; did you mean SGC?'],
  ['model: {type: GCNN}', '; did you mean GCN?'],
  ['task: LINK_PREDICTION', '; did you mean LINKS?'],
  ['task: classification', '; did you mean NODES?'],
])('%s: %s', (text, said) => {
  expect(saidOf(text)).toContain(said);
});

test('every field that a hint names is one of the spec', () => {
  expect(foreignFields.length).toBeGreaterThan(15);
  for (const path of foreignFields) {
    const reading = readSpec(null, [`${path}=`]);
    expect('ok' in reading, path).toBe(true);
  }
});

test('a value that stands where a map is expected is put into it', () => {
  expect(saidOf('model: GCN')).toMatch(/expected a map .*; did you mean \{type: GCN\}\?$/);
  expect(saidOf('model: GIIN')).toMatch(/did you mean \{type: GIN\}, one of GRAPHSAGE, GCN, .*\?$/);
  expect(saidOf('sampling: LABOR')).toContain('did you mean {algorithm: LABOR}?');
  expect(saidOf('model: 3')).not.toContain('did you mean');
});
