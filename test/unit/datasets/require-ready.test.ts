import { expect, test } from 'vitest';
import { requireReady } from '../../../src/datasets/ready-dataset.ts';
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
  expect(refusal('npm-dep-2016')).toBe(
    'dataset npm-dep-2016 is FAILED, not READY; its source mended, import it again under this id',
  );
});
