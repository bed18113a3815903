import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { jobProgress } from '../../support/api-fakes.ts';
import { createBrowser, lacksChromium } from '../../support/browser.ts';
import { startPage, type TestPage } from './server.ts';

const started: TestPage[] = [];
const browser = createBrowser();
afterEach(async () => {
  await browser.close();
  for (const page of started.splice(0)) await page.close();
});
afterAll(() => browser.close());

async function start(...options: Parameters<typeof startPage>): Promise<TestPage> {
  const page = await startPage(...options);
  started.push(page);
  return page;
}

const attempt = {
  ...{ number: 1, startAtMs: 1_700_000_001_000, endAtMs: null, endReason: 'NONE' as const },
  ...{ message: '', executorRestarts: 0, exits: [], resumed: null },
};

describe.skipIf(lacksChromium('the page in Chromium'))('the page', () => {
  it('lists jobs with what they wait for, and follows one', async () => {
    const server = await start();
    const { page, complaints } = await browser.open(server.url);
    const row = page.getByRole('row', { name: /mine/ });
    await row.getByText('waits for 1 device').waitFor();
    server.jobs.waitsFor('waits for 2 devices');
    await row.getByText('waits for 2 devices').waitFor();
    await row.getByRole('link', { name: 'mine' }).click();
    await page.getByRole('heading', { name: 'Jobs / mine' }).waitFor();
    server.jobs.transition('RUNNING', { attempts: [attempt] });
    server.jobs.setProgress(jobProgress());
    server.jobs.endEpochs(150);
    await page.getByText('epoch 149').first().waitFor();
    server.jobs.transition('SUCCEEDED', { endAtMs: 1_700_000_009_000 });
    await page.getByText('succeeded').waitFor();
    expect(complaints).toEqual([]);
  });
});
