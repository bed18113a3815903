import { readFileSync } from 'node:fs';
import type { DescMessage } from '@bufbuild/protobuf';
import { describe, expect, it } from 'vitest';
import { rpcMethods } from '../../../src/api/api.ts';
import { JobSpecSchema } from '../../../src/api/gen/gnnd/v1/job_spec_pb.ts';
import { codeOfReason, reasonStatuses } from '../../../src/api/grpc-status.ts';
import { errorReasons } from '../../../src/base/errors.ts';
import { readSpec } from '../../../src/cli/read/spec-file.ts';
import type { JobSpecInput } from '../../../src/spec/job-spec.ts';
import { resolveJobSpec } from '../../../src/spec/resolve-job-spec.ts';
import { plainOf } from '../../../src/spec/spec-codec.ts';
import { contextOf } from '../../support/spec-context.ts';

const read = (name: string) =>
  readFileSync(new URL(`../../../docs/${name}`, import.meta.url), 'utf8');
const jobSpec = read('job-spec.md');
const api = read('api.md');

function fieldPaths(message: DescMessage, prefix = ''): readonly string[] {
  return message.fields.flatMap((field) =>
    field.fieldKind === 'message'
      ? fieldPaths(field.message, `${prefix}${field.name}.`)
      : [`${prefix}${field.name}`],
  );
}

describe('docs/job-spec.md', () => {
  it('has every field of the spec, in its order', () => {
    const documented = [...jobSpec.matchAll(/^\| `([a-z0-9_.]+)` \|/gm)].map(([, path]) => path);
    expect(documented).toEqual(fieldPaths(JobSpecSchema));
  });

  it('has examples that are valid specs', () => {
    const examples = [...jobSpec.matchAll(/```yaml\n(.*?)```/gs)].map(([, text]) => text ?? '');
    expect(examples).toHaveLength(2);
    const context = contextOf({ deviceNames: ['cpu:0', 'cpu:1'] });
    for (const text of examples) {
      const reading = readSpec({ file: 'job-spec.md', text });
      if ('problems' in reading) throw new Error(JSON.stringify(reading.problems));
      expect(
        resolveJobSpec(plainOf<JobSpecInput>(JobSpecSchema, reading.ok.spec), context),
      ).toHaveProperty('ok');
    }
  });
});

describe('docs/api.md', () => {
  it('names every method that is served', () => {
    for (const { method } of rpcMethods) expect(api).toContain(method);
  });

  it('has every reason under its code', () => {
    const names = new Map(Object.entries(codesByName(api)));
    for (const reason of errorReasons) expect(names.get(reason), reason).toBeDefined();
    const sameCode = (left: string, right: string) => names.get(left) === names.get(right);
    for (const left of errorReasons) {
      for (const right of errorReasons) {
        expect(sameCode(left, right)).toBe(codeOfReason(left) === codeOfReason(right));
      }
    }
    expect(Object.keys(reasonStatuses)).toHaveLength(errorReasons.length);
  });
});

/** Reads the table of errors: the code of each reason, by name. */
function codesByName(text: string): Readonly<Record<string, string>> {
  const codes: Record<string, string> = {};
  for (const [, code, reasons] of text.matchAll(/^\| ([A-Z_]+) \| ([^|]*) \|/gm)) {
    for (const [, reason] of (reasons ?? '').matchAll(/`([A-Z_]+)`/g)) {
      if (code !== undefined && reason !== undefined) codes[reason] = code;
    }
  }
  return codes;
}
