import { describe, expect, it } from 'vitest';
import type { JobSpecInput } from '../../../src/spec/job-spec.ts';
import { resolveJobSpec } from '../../../src/spec/resolve-job-spec.ts';
import { scheduleText } from '../../../src/spec/schedule.ts';
import { contextOf, okOf } from '../../support/spec-context.ts';

/** Of a text: most values are 0. */
const words = {
  ...{ rows: 100, zero_share: 0.9, varying: 500, standardized: 0 },
  ...{ deviation_median: 0.02, deviation_largest: 0.1 },
};

function scheduleOf(trainNodes: number | null, fields: JobSpecInput = {}) {
  const context = contextOf({ trainNodes, deviceNames: ['cpu:0', 'cpu:1'] });
  const given = { dataset: 'any', ...fields };
  const spec = okOf(resolveJobSpec(given, context));
  expect(resolveJobSpec(spec, context)).toEqual({ ok: spec });
  const { epochs, optimizer } = spec.training;
  const text = scheduleText(given, spec, { trainNodes, items: trainNodes });
  return { epochs, rate: optimizer.learningRate, text };
}

describe('epochs and learning rate that a job leaves open', () => {
  it('are 10 and the usual rate where an epoch has many batches', () => {
    expect(scheduleOf(60_000)).toEqual({
      epochs: 10,
      rate: 0.003,
      text:
        '10 epochs, chosen: an epoch has 59 batches; ' +
        'learning rate 0.003, chosen: an epoch has 59 batches',
    });
    expect(scheduleOf(34_693)).toMatchObject({ epochs: 12, rate: 0.003 });
    expect(scheduleOf(31 * 1024 + 1)).toMatchObject({ epochs: 13, rate: 0.003 });
    expect(scheduleOf(31 * 1024)).toMatchObject({ epochs: 13, rate: 0.01 });
  });

  it('are as many as have 400 batches, at most 100, and a larger one where it has few', () => {
    expect(scheduleOf(140)).toEqual({
      epochs: 100,
      rate: 0.01,
      text:
        '100 epochs, chosen: an epoch has 1 batch; ' +
        'learning rate 0.01, chosen: an epoch has 1 batch',
    });
    expect(scheduleOf(4096)).toMatchObject({ epochs: 100, rate: 0.01 });
    expect(scheduleOf(4097)).toMatchObject({ epochs: 80, rate: 0.01 });
    expect(scheduleOf(140, { training: { batchSize: 20 } })).toMatchObject({ epochs: 58 });
    expect(scheduleOf(140, { training: { lrSchedule: { warmupEpochs: 300 } } }).epochs).toBe(300);
  });

  it('are what the spec says', () => {
    const asked = { epochs: 3, optimizer: { learningRate: 0.02 } };
    expect(scheduleOf(140, { training: asked })).toEqual({
      ...{ epochs: 3, rate: 0.02 },
      text: '3 epochs, as asked for; learning rate 0.02, as asked for',
    });
    expect(scheduleOf(140, { training: { epochs: 3 } })).toMatchObject({ epochs: 3, rate: 0.01 });
  });

  it('have the usual rate where another did not win or was not measured', () => {
    const rate = (fields: JobSpecInput) => scheduleOf(140, fields).rate;
    expect(rate({ model: { type: 'HOGA' } })).toBe(0.003);
    expect(rate({ model: { type: 'GIN' } })).toBe(0.003);
    expect(rate({ model: { type: 'GAT' } })).toBe(0.01);
    expect(rate({ model: { type: 'GATV2' } })).toBe(0.01);
    expect(rate({ training: { optimizer: { type: 'SGD' } } })).toBe(0.003);
    expect(scheduleOf(null)).toMatchObject({ epochs: 10, rate: 0.003 });
  });

  it('have a weight decay for words too rare for the training nodes', () => {
    const columns = {
      ...{ rows: 1000, zero_share: 0.987, varying: 1432, standardized: 0 },
      ...{ deviation_median: 0.01, deviation_largest: 0.1 },
    };
    const decay = (trainNodes: number, fields: JobSpecInput = {}) => {
      const context = contextOf({ trainNodes, columns });
      const given = { dataset: 'any', ...fields };
      const spec = okOf(resolveJobSpec(given, context));
      expect(resolveJobSpec(spec, context)).toEqual({ ok: spec });
      const text = scheduleText(given, spec, { trainNodes, columns, items: trainNodes });
      return [spec.training.optimizer.weightDecay, text.split('; ')[2]];
    };
    const chosen = 'weight decay 0.0005, chosen: 140 training nodes for 1,432 columns';
    expect(decay(140)).toEqual([0.0005, chosen]);
    expect(decay(2864)).toEqual([0, undefined]);
    expect(decay(140, { training: { optimizer: { type: 'ADAMW' } } })).toEqual([0, undefined]);
    expect(decay(140, { model: { type: 'GAT' } })).toEqual([0, undefined]);
    const none = { training: { optimizer: { weightDecay: 0 } } };
    expect(decay(140, none)).toEqual([0, 'weight decay 0, as asked for']);
  });

  it('count two stored edges as one link where the source says so', () => {
    const epochs = (isUndirected: boolean) => {
      const context = contextOf({ numEdges: 40_000, deviceNames: ['cpu:0'], isUndirected });
      const spec = okOf(resolveJobSpec({ dataset: 'any', task: 'LINKS' }, context));
      return spec.training.epochs;
    };
    // 34,000 links are 34 batches, 17,000 are 17, and there shall be 2,000.
    expect([epochs(false), epochs(true)]).toEqual([59, 100]);
  });

  it('go by the features where links are learnt', () => {
    const links = (fields: Omit<JobSpecInput, 'dataset'>) => {
      const given: JobSpecInput = { dataset: 'any', task: 'LINKS', ...fields };
      const context = contextOf({ numEdges: 80_000, deviceNames: ['cpu:0'], columns: words });
      const spec = okOf(resolveJobSpec(given, context));
      expect(resolveJobSpec(spec, context)).toEqual({ ok: spec });
      return scheduleText(given, spec, { trainNodes: null, items: 68_000, columns: words }).split(
        '; ',
      )[1];
    };
    expect(links({})).toBe(
      'learning rate 0.01, chosen: links are learnt from sparse features as they are',
    );
    expect(links({ features: { standardize: 'ON' } })).toBe(
      'learning rate 0.003, chosen: links are learnt from standardised or dense features',
    );
    expect(links({ model: { type: 'GCN' } })).toBe(
      'learning rate 0.003, chosen: what links of a GCN want was not measured',
    );
  });

  it('end with small steps, and without dropout where links are many', () => {
    const chosen = (columns: number, fields: Omit<JobSpecInput, 'dataset'> = {}) => {
      const given: JobSpecInput = { dataset: 'any', task: 'LINKS', ...fields };
      const facts = { columns: { ...words, varying: columns } };
      const context = contextOf({ numEdges: 80_000, deviceNames: ['cpu:0'], ...facts });
      const spec = okOf(resolveJobSpec(given, context));
      expect(resolveJobSpec(spec, context)).toEqual({ ok: spec });
      const text = scheduleText(given, spec, { trainNodes: null, items: 68_000, ...facts });
      const { model, training } = spec;
      return [training.lrSchedule.type, model.dropout, text.split('; ').slice(2).join('; ')];
    };
    const cosine = 'schedule COSINE, chosen: small steps at the end rank links better';
    const of = (columns: number) => `an epoch has 68,000 links for ${columns} columns`;
    expect(chosen(136)).toEqual(['COSINE', 0, `${cosine}; dropout 0, chosen: ${of(136)}`]);
    expect(chosen(137)).toEqual(['COSINE', 0.5, `${cosine}; dropout 0.5, chosen: ${of(137)}`]);
    const asked = {
      model: { dropout: 0.3 },
      training: { lrSchedule: { type: 'CONSTANT' } },
    } as const;
    const told = 'schedule CONSTANT, as asked for; dropout 0.3, as asked for';
    expect(chosen(136, asked)).toEqual(['CONSTANT', 0.3, told]);
    const patient = chosen(137, { training: { earlyStop: { patienceEpochs: 5 } } });
    expect(patient[0]).toBe('CONSTANT');
    expect(patient[2]).toContain('schedule CONSTANT, chosen: the job may end early');
    expect(chosen(136, { model: { type: 'GCN' } })).toEqual(['CONSTANT', 0.5, '']);
    expect(chosen(136, { task: 'NODES' }).slice(0, 2)).toEqual(['CONSTANT', 0.5]);
    expect(chosen(136, { task: 'LINK_LABELS' }).slice(0, 2)).toEqual(['CONSTANT', 0.5]);
  });

  it('are nothing to tell of a job that trains nothing', () => {
    const loader = { kind: 'LOAD', training: { epochs: 9 } } as const;
    expect(scheduleOf(140, loader).text).toBe('');
  });
});
