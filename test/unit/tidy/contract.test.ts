import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { ReasonSchema } from '../../../src/api/gen/gnnd/v1/types_pb.ts';
import { errorReasons } from '../../../src/base/errors.ts';
import { daemonExit, executorExit, gnnctlExit } from '../../../src/base/exit-codes.ts';
import { reasons } from '../../../src/records/job-record.ts';
import { root } from './sources.ts';

/** The promises of proto/contract, compared with the code. Metrics have a test of their own. */

const read = (path: string) => readFileSync(join(root, path), 'utf8');

describe('proto/contract', () => {
  const contract = parse(read('proto/contract/reasons.yaml')) as {
    api_errors: string[];
    job_reasons: Record<string, number>;
  };

  it('lists the reasons of failed calls that the code knows', () => {
    expect([...errorReasons]).toEqual(contract.api_errors);
  });

  it('lists the reasons of jobs as the code and the protocol know them', () => {
    expect([...reasons]).toEqual(Object.keys(contract.job_reasons));
    const inProtocol = ReasonSchema.values
      .filter(({ number }) => number !== 0)
      .map(({ name, number }) => [name.replace(/^REASON_/, ''), number]);
    expect(inProtocol).toEqual(Object.entries(contract.job_reasons));
  });

  it('has one version in TypeScript and Python', () => {
    const version = JSON.parse(read('package.json')).version;
    expect(read('src/python/pyproject.toml')).toContain(`\nversion = "${version}"\n`);
  });

  it('lists the exit codes of all three programs', () => {
    const codes = parse(read('proto/contract/exit-codes.yaml'));
    expect({ daemon: daemonExit, executor: executorExit, gnnctl: gnnctlExit }).toEqual(codes);
  });
});
