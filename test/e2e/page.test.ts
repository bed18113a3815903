import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ExecutorRole } from '../../src/api/gen/gnnd/v1/executor_pb.ts';
import { HostService } from '../../src/api/gen/gnnd/v1/host_service_pb.ts';
import { JobService } from '../../src/api/gen/gnnd/v1/job_service_pb.ts';
import { ModelType } from '../../src/api/gen/gnnd/v1/model_pb.ts';
import { createBrowser, type Look, lacksChromium } from '../support/browser.ts';
import { crew } from '../support/crews.ts';
import { repository, TestDaemon } from '../support/daemon.ts';

/** The page over a real daemon and a real job; the pictures in docs/ are made here. */

const lacks = lacksChromium('the page of a daemon');
const browser = createBrowser();
let daemon: TestDaemon;

beforeAll(async () => {
  daemon = await TestDaemon.start({ cpuDevices: 3, datasets: ['cora'] });
  await daemon.train('cora-sage', {
    dataset: 'cora',
    model: { type: ModelType.GRAPHSAGE, hiddenDim: 64, dropout: 0.5 },
    sampling: { fanouts: [10, 10] },
    training: { epochs: 40, batchSize: 4, staleness: 2, randomSeed: 1n },
    cache: { ratio: 0.2 },
    resources: { devices: 3 },
  });
});

afterAll(async () => {
  await browser.close();
});

test('a timeline has all of an attempt, and is there after its end', async () => {
  const { getJobTimeline } = JobService.method;
  const { attempt, stretches, queueCapacity } = await daemon.call(getJobTimeline, {
    name: 'jobs/cora-sage',
  });
  expect(attempt).toBe(1);
  expect(queueCapacity).toBeGreaterThan(0);
  const roles = new Set(stretches.flatMap(({ executors }) => executors.map(({ role }) => role)));
  expect(roles).toContain(ExecutorRole.SAMPLER);
  expect(roles).toContain(ExecutorRole.TRAINER);
  const epochs = await daemon.epochs('cora-sage');
  const sum = (parts: readonly bigint[]) => parts.reduce((total, ns) => total + Number(ns), 0);
  const seen = sum(stretches.flatMap(({ executors }) => executors.map(({ trainNs }) => trainNs)));
  const told = sum(epochs.flatMap((each) => each.executorTimes.map(({ trainNs }) => trainNs)));
  expect(seen).toBeGreaterThanOrEqual(told);
});

/** The screenshots that docs/page.md shows. */
const looks: Readonly<Record<string, Look>> = {
  'page-light': { width: 820, height: 2000, colorScheme: 'light' },
  'page-dark': { width: 820, height: 900, colorScheme: 'dark' },
  'page-360': { width: 360, height: 800, colorScheme: 'light' },
};

describe.skipIf(lacks)('in a browser', () => {
  test.each(Object.entries(looks))('%s: all of a job is there, and fits', async (name, look) => {
    const link = await daemon.call(HostService.method.createPageLink, {});
    expect(link.address).toContain(`http://${daemon.metrics}/#token=`);
    const { page, complaints } = await browser.open(link.address, look);
    await page.getByRole('link', { name: 'cora-sage' }).click();
    for (const heading of ['Who did what', 'Cache', 'Plan']) {
      await page.getByRole('heading', { name: heading }).waitFor();
    }
    await page.getByText('cpu:0').first().waitFor();
    await page.getByText('the hottest').waitFor();
    await page.getByText('Logs', { exact: true }).click();
    await page.locator('.logs pre span').first().waitFor();
    await page.getByText('Logs', { exact: true }).click();
    const overflow = await page.evaluate('document.documentElement.scrollWidth - innerWidth');
    expect(overflow).toBeLessThanOrEqual(0);
    expect(complaints).toEqual([]);
    if (process.env['UPDATE_GOLDEN'] !== '1') return;
    await page.evaluate('scrollTo(0, 0)');
    const folder = join(repository, 'docs', 'images');
    mkdirSync(folder, { recursive: true });
    await page.screenshot({ path: join(folder, `${name}.png`) });
  });

  test.each(['light', 'dark'] as const)(
    'its report has each class and a picture, %s',
    async (scheme) => {
      const link = await daemon.call(HostService.method.createPageLink, {});
      const look = { width: 820, height: 1500, colorScheme: scheme };
      const { page, complaints } = await browser.open(link.address, look);
      await page.getByRole('link', { name: 'cora-sage' }).click();
      await page.getByText('Report', { exact: true }).click();
      const { result } = await daemon.job('cora-sage');
      const accuracy = `${(100 * (result?.testAccuracyBest ?? 0)).toFixed(2)}\u00a0%`;
      await page.getByText(`accuracy ${accuracy}`).waitFor();
      const rows = page.getByRole('region', { name: 'Scores by class' }).locator('tbody tr');
      // Seven classes, their mean, and that by nodes.
      expect(await rows.count()).toBe(9);
      const matrix = page.getByRole('slider', { name: 'Cell of the matrix' });
      await matrix.focus();
      await page.keyboard.press('Home');
      await page.getByText(/of [\d,]+ nodes of 0 \(.*are said to be 0$/).waitFor();
      const isDrawn = `(() => {
      const canvas = document.querySelector('.matrix canvas');
      const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
      return new Set(data).size;
    })()`;
      expect(await page.evaluate(isDrawn)).toBeGreaterThan(20);
      await page.getByRole('combobox').first().selectOption('validation');
      await page.getByText(/^500$/).first().waitFor();
      expect(await page.evaluate('document.documentElement.scrollWidth - innerWidth')).toBe(0);
      expect(complaints).toEqual([]);
      if (process.env['UPDATE_GOLDEN'] !== '1' || scheme === 'dark') return;
      const report = page.locator('.report');
      await report.screenshot({ path: join(repository, 'docs', 'images', 'page-report.png') });
    },
  );

  test('a job says how its batches a step came about, and how many Trainers wait', async () => {
    const steps = { epochs: 1, batchSize: 70, batchesPerStep: 1, threadsPerTrainer: 1 };
    await daemon.train('waits', { dataset: 'cora', training: steps, ...crew(1, 2) });
    const link = await daemon.call(HostService.method.createPageLink, {});
    const { page } = await browser.open(link.address, looks['page-light'] as Look);
    await page.getByRole('link', { name: 'waits' }).click();
    await page.getByText('1, as asked for').waitFor();
    await page.getByText(/^1 of 2 Trainers will wait.*batches_per_step: 2 would use/).waitFor();
  });
});
