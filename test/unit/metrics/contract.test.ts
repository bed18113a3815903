import { readFileSync } from 'node:fs';
import { describe, expect, onTestFinished, test } from 'vitest';
import { parse } from 'yaml';
import { Reason } from '../../../src/api/gen/gnnd/v1/types_pb.ts';
import { errorReasons } from '../../../src/base/errors.ts';
import { daemonExit, executorExit, gnnctlExit } from '../../../src/base/exit-codes.ts';
import {
  daemonFamilies,
  type FamilyDeclaration,
  slotFamilies,
} from '../../../src/metrics/families.ts';
import { createMetrics } from '../../../src/metrics/metrics.ts';
import { reasons } from '../../../src/records/job-record.ts';
import { deviceNames, hostInput, jobInput, options } from './job-input.ts';

function contract(name: string): Record<string, unknown> {
  return parse(readFileSync(`proto/contract/${name}.yaml`, 'utf8'));
}

/** A declaration the way metrics.yaml writes it. */
function written(family: FamilyDeclaration): object {
  const labels = Object.entries(family.labels).map(([label, values]) => [label, values ?? 'any']);
  return {
    type: family.type,
    labels: Object.fromEntries(labels),
    ...(family.bounds.length === 0 ? {} : { buckets: family.bounds }),
  };
}

describe('the contract', () => {
  test('lists the metric families that the code declares', () => {
    const declared: Record<string, FamilyDeclaration> = { ...daemonFamilies, ...slotFamilies };
    const expected = Object.entries(declared).map(([name, family]) => [name, written(family)]);
    expect(contract('metrics')['families']).toEqual(Object.fromEntries(expected));
  });

  test('lists the families that are shown, and all of its own are shown with samples', async () => {
    const metrics = createMetrics(options);
    onTestFinished(() => metrics.close());
    metrics.updateHost(hostInput(deviceNames(1)));
    metrics.updateJob(jobInput(0, deviceNames(1)));
    const text = await metrics.render('PROMETHEUS');
    const types = [...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name, type]) => [
      name,
      type,
    ]);
    const { families, process } = contract('metrics');
    const own = Object.entries(Object(families)).map(([name, family]) => [
      name,
      Object(family).type,
    ]);
    expect(types.toSorted()).toEqual([...own, ...Object.entries(Object(process))].toSorted());
    for (const [name] of own) expect(text, name).toMatch(new RegExp(`^${name}[_a-z]*[{ ]`, 'm'));
  });

  test('every family of a slot carries the slot, and its name and help are well formed', () => {
    for (const family of Object.values(slotFamilies)) {
      expect(Object.keys(family.labels)[0]).toBe('job_slot');
    }
    for (const [name, family] of Object.entries({ ...daemonFamilies, ...slotFamilies })) {
      expect(name).toMatch(/^(gnnd|grpc_server)_[a-z0-9_]+$/);
      expect(name.endsWith('_total'), name).toBe(family.type === 'counter');
      expect(family.help, name).toMatch(/^[A-Z1].*\.$/);
    }
  });

  test('lists the reasons of API errors', () => {
    expect(contract('reasons')['api_errors']).toEqual([...errorReasons]);
  });

  test('lists the reasons of jobs with the numbers of the proto', () => {
    const numbers = Object.entries(Reason).filter(([, number]) => typeof number === 'number');
    const ofProto = numbers.filter(([name]) => name !== 'UNSPECIFIED');
    expect(contract('reasons')['job_reasons']).toEqual(Object.fromEntries(ofProto));
    expect(ofProto.map(([name]) => name)).toEqual([...reasons]);
  });

  test('lists the exit codes', () => {
    expect(contract('exit-codes')).toEqual({
      daemon: daemonExit,
      executor: executorExit,
      gnnctl: gnnctlExit,
    });
  });

  test('no two meanings share an exit code', () => {
    for (const codes of [daemonExit, executorExit, gnnctlExit]) {
      const values = Object.values(codes);
      expect(new Set(values).size).toBe(values.length);
    }
  });
});
