import { expect, test } from 'vitest';
import { requireClasses, requireReady } from '../../../src/datasets/ready-dataset.ts';
import { newDataset } from '../store/job-values.ts';
import { openTestStore, temporaryStorePath } from '../store/store-fixtures.ts';

test('a mistyped dataset is answered with the nearest one that a job could have', () => {
  const store = openTestStore(temporaryStorePath());
  store.insertDataset({ ...newDataset('npm-deps-2016'), state: 'READY' });
  store.insertDataset({ ...newDataset('npm-dep-2016'), state: 'FAILED' });
  expect(requireReady(store, 'npm-deps-2016').id).toBe('npm-deps-2016');
  const refusal = (id: string) => {
    try {
      return requireReady(store, id).id;
    } catch (error) {
      return (error as Error).message;
    }
  };
  const meant = 'there is no dataset npm-dps-2016; did you mean npm-deps-2016?';
  expect(refusal('npm-dps-2016')).toBe(meant);
  expect(refusal('cora')).toBe('there is no dataset cora');
  expect(refusal('npm-dep-2016')).toBe('dataset npm-dep-2016 is FAILED, not READY');
});

test('a dataset without classes is refused by the field that names it', () => {
  const classes = { ...newDataset('cora'), createAtMs: 1 };
  expect(requireClasses(classes, 'spec.dataset')).toBe(classes);
  const several = { ...classes, task: 'MULTI_LABEL' } as const;
  expect(() => requireClasses(several, 'spec.dataset')).toThrow(
    'spec.dataset: cora has labels (MULTI_LABEL) in place of classes, which jobs do not learn yet',
  );
  const targets = { ...classes, task: 'REGRESSION' } as const;
  expect(() => requireClasses(targets, 'name')).toThrow(/^name: cora has targets \(REGRESSION\)/);
});
