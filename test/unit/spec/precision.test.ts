import { describe, expect, it } from 'vitest';
import { hasBfloat16Products } from '../../../src/base/processor.ts';
import type { JobSpecInput } from '../../../src/spec/job-spec.ts';
import { precisionText } from '../../../src/spec/precision.ts';
import { resolveJobSpec } from '../../../src/spec/resolve-job-spec.ts';
import type { ResolveContext } from '../../../src/spec/rules/rule.ts';
import { contextOf, okOf } from '../../support/spec-context.ts';

const classes = { task: 'CLASSIFICATION', count: 7 } as const;

function choiceOf(fields: JobSpecInput = {}, changes: Partial<ResolveContext> = {}): string {
  const context = contextOf({ hasBfloat16: true, targets: classes, ...changes });
  const given = { dataset: 'any', training: { epochs: 1 }, ...fields };
  const spec = okOf(resolveJobSpec(given, context));
  const text = precisionText(given, spec, context);
  expect(text.startsWith(spec.training.precision)).toBe(true);
  // Wherever a job goes on, it goes on with what was chosen.
  const elsewhere = { ...context, hasBfloat16: !context.hasBfloat16 };
  expect(okOf(resolveJobSpec(spec, elsewhere)).training.precision).toBe(spec.training.precision);
  return text;
}

describe('training.precision: AUTO', () => {
  it('is bfloat16 where the processor has it and the model was measured', () => {
    const why = 'the processor has instructions for it, and it was measured to cost no accuracy';
    for (const type of ['GRAPHSAGE', 'GCN', 'GAT', 'GATV2'] as const) {
      expect(choiceOf({ model: { type } })).toBe(`BFLOAT16, chosen: ${why}`);
    }
  });

  it('is float32 elsewhere, and says why', () => {
    const float32 = (why: string) => `FLOAT32, chosen: ${why}`;
    const none = float32('the processor has no instructions for bfloat16');
    expect(choiceOf({}, { hasBfloat16: false })).toBe(none);
    expect(choiceOf({ training: { epochs: 1, matrixLibrary: 'OPENBLAS' } })).toBe(
      float32('OPENBLAS multiplies bfloat16 as float32'),
    );
    expect(choiceOf({ training: { epochs: 1, determinism: 'PORTABLE' } })).toBe(
      float32('PORTABLE bits are those of float32'),
    );
    expect(choiceOf({}, { deviceNames: ['cuda:0'] })).toBe(
      float32('accuracy in bfloat16 was measured on CPU devices alone'),
    );
    for (const type of ['GIN', 'SIGN'] as const) {
      expect(choiceOf({ model: { type } })).toBe(
        float32(`what bfloat16 costs a ${type} was not measured`),
      );
    }
    expect(choiceOf({}, { targets: { task: 'REGRESSION', count: 1 } })).toBe(
      float32('what bfloat16 costs was measured for classes alone'),
    );
  });

  it('says what was asked for', () => {
    const asked = { epochs: 1, precision: 'FLOAT32' } as const;
    expect(choiceOf({ training: asked })).toBe('FLOAT32, as asked for');
  });
});

describe('hasBfloat16Products', () => {
  const cpuinfo = (flags: string) => `processor\t: 0\nflags\t\t: fpu ${flags} vme\nbugs\t:\n`;

  it('goes by the flags of /proc/cpuinfo', () => {
    expect(hasBfloat16Products(cpuinfo('avx512f avx512_bf16'))).toBe(true);
    expect(hasBfloat16Products(cpuinfo('amx_bf16'))).toBe(true);
    expect(hasBfloat16Products(cpuinfo('avx2 avx512f avx512_vnni'))).toBe(false);
    expect(hasBfloat16Products('')).toBe(false);
  });
});
