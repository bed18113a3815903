import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { create } from '@bufbuild/protobuf';
import { expect, test } from 'vitest';
import { JobSchema, JobState } from '../../../src/api/gen/gnnd/v1/job_pb.ts';
import { Determinism } from '../../../src/api/gen/gnnd/v1/training_pb.ts';
import { compared, everybodysSha256 } from '../../../src/cli/demo/demo-again.ts';
import { repository } from '../../support/daemon.ts';

const jobOf = (parametersSha256: string, determinism: Determinism) =>
  create(JobSchema, {
    state: JobState.SUCCEEDED,
    result: { parametersSha256 },
    effectiveSpec: { training: { determinism } },
  });
const { PORTABLE, STRICT } = Determinism;
const killed = { pid: 7, epoch: 4 };

test.each([
  ['PORTABLE, as in README', PORTABLE, everybodysSha256, everybodysSha256, true],
  ['PORTABLE, twice what is not in README', PORTABLE, 'a', 'a', false],
  ['PORTABLE, another the second time', PORTABLE, everybodysSha256, 'a', false],
  ['STRICT, the same twice', STRICT, 'a', 'a', true],
  ['STRICT, another the second time', STRICT, 'a', 'b', false],
])('two trainings are compared: %s', (_name, determinism, first, second, isSame) => {
  const job = jobOf(second, determinism);
  const outcome = compared(jobOf(first, determinism), { job, killed });
  expect(outcome.isSame).toBe(isSame);
  const said = outcome.lines.join('\n');
  expect(said).toContain('process 7 was killed in epoch 4');
  expect(said.includes('The same SHA-256')).toBe(isSame);
  expect(said.includes(everybodysSha256)).toBe(determinism === PORTABLE);
});

test('README prints the SHA-256 that the demo compares with', () => {
  expect(readFileSync(join(repository, 'README.md'), 'utf8')).toContain(everybodysSha256);
});
