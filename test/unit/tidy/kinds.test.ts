import { describe, expect, it } from 'vitest';
import { kindViolations } from './kind-rules.ts';
import { listed, readSources } from './sources.ts';

const files = readSources(/^src\/.*\.tsx?$/);

describe('kinds of jobs and models', () => {
  it('are asked for where the choice is made, and nowhere else', () => {
    expect(files.length).toBeGreaterThan(50);
    expect(listed(files.flatMap(kindViolations))).toBe('');
  });
});

describe('the rules of kinds', () => {
  it.each([
    ['src/plan/memory-plan.ts', 'if (infers(spec)) return 0;'],
    ['src/work/work.ts', 'const rows = takesRows(spec.model.type);'],
    ['src/web/job-view.tsx', '{!isInference(job) && <Chart />}'],
    ['src/spec/rules/model.ts', 'if (kindOf(type).input === ModelInput.ROWS) return;'],
    ['src/jobs/jobs.ts', "if (spec.kind === 'INFERENCE') return;"],
    ['src/cli/show/job-text.ts', 'spec.kind === JobKind.INFERENCE'],
    ['src/plan/train-rows.ts', 'bornReady: true,'],
  ])('refuse in %s: %s', (path, text) => {
    expect(kindViolations({ path, text })).toHaveLength(1);
  });

  it.each([
    ['src/spec/spec-parts.ts', '[ModelInput.ROWS]: {'],
    ['src/cli/show/kind-views.ts', 'spec?.kind === JobKind.INFERENCE'],
    ['src/cli/commands/predict.ts', 'kind: JobKind.INFERENCE,'],
    ['src/plan/rows.ts', 'segment: () => ({ bornReady: true })'],
    ['src/work/work.ts', "if (reads({ kind }, 'training')) return training;"],
  ])('let %s have: %s', (path, text) => {
    expect(kindViolations({ path, text })).toEqual([]);
  });
});
