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

  it('lists the exit codes of all three programs', () => {
    const codes = parse(read('proto/contract/exit-codes.yaml'));
    expect({ daemon: daemonExit, executor: executorExit, gnnctl: gnnctlExit }).toEqual(codes);
  });
});

/** The methods of an interface of contract.ts, in order. */
function methodsOf(text: string, name: string): readonly string[] {
  const body =
    new RegExp(`export interface ${name} \\{\\n([\\s\\S]*?)\\n\\}`).exec(text)?.[1] ?? '';
  return [...body.matchAll(/^ {2}(\w+)\(/gm)].map(([, method = '']) => method);
}

/** The functions that bindings export, file by file in the order given. */
function exportsOf(files: readonly string[]): readonly string[] {
  return files.flatMap((path) =>
    [...read(path).matchAll(/\bexports\.Set\(\s*"(\w+)"/g)].map(([, name = '']) => name),
  );
}

describe('the native border', () => {
  const contract = read('src/native/contract.ts');

  it('lists the functions of gnnd_core in the order of the addon', () => {
    const rooms = [...read('native/node/core/addon.cc').matchAll(/Define(\w+)\(env/g)];
    const files = rooms.map(([, room = '']) => `native/node/core/${room.toLowerCase()}_binding.cc`);
    const declared = methodsOf(contract, 'CoreAddon');
    expect(declared.length).toBeGreaterThan(10);
    expect(declared).toEqual(exportsOf(files));
  });

  it('lists the functions of gnnd_train', () => {
    const declared = methodsOf(contract, 'TrainAddon');
    const files = ['trainer', 'predict'].map((room) => `native/node/train/${room}_binding.cc`);
    expect(declared).toEqual(exportsOf(files));
    expect(declared).toEqual(['modelProbe', 'trainerRun', 'modelPredict']);
  });

  it('has one list of failure codes on both sides', () => {
    const native =
      /NameOf\(Code code\) \{[\s\S]*?\n\}/.exec(read('native/node/convert.h'))?.[0] ?? '';
    const names = [...native.matchAll(/case Code::\w+:\s*return "(\w+)"/g)].map(([, n = '']) => n);
    const union = /export type NativeCode =([^;]*);/.exec(contract)?.[1] ?? '';
    const declared = [...union.matchAll(/'(\w+)'/g)].map(([, n = '']) => n);
    expect(declared.length).toBeGreaterThan(5);
    expect(declared).toEqual(names.filter((name) => name !== 'OK'));
  });
});
