import { afterEach, describe, expect, it } from 'vitest';
import type { Token } from '../../../src/config/tokens.ts';
import { encodeSpec } from '../../../src/spec/spec-codec.ts';
import { jobProgress } from '../../support/api-fakes.ts';
import { createBrowser, lacksChromium, type Tab } from '../../support/browser.ts';
import { hangMs } from '../../support/until.ts';
import { epochReport, someTimes } from '../../unit/store/job-values.ts';
import { startPage as start, type TestPage } from './server.ts';

const browser = createBrowser();
afterEach(() => browser.close());

const attempt = {
  ...{ number: 1, startAtMs: 1_700_000_001_000, endAtMs: null, endReason: 'NONE' as const },
  ...{ message: '', executorRestarts: 0, exits: [], resumed: null },
};

/** The page of a job that trains. */
async function training(): Promise<{ readonly server: TestPage; readonly tab: Tab }> {
  const server = await start();
  server.jobs.transition('RUNNING', { attempts: [attempt] });
  server.jobs.setProgress(jobProgress());
  server.jobs.setTimeline({
    queueCapacity: 8,
    stretches: [0, 1, 2, 3].map((second) => ({
      ...{ startAtMs: 1_700_000_001_000 + 1000 * second, durationNs: 1e9, queueDepth: second },
      executors: [
        { ...someTimes, role: 'SAMPLER', device: 'cpu:0', sampleNs: 6e8, trainNs: 0, applyNs: 0 },
        { ...someTimes, trainNs: 25e7 * second },
      ],
    })),
  });
  const tab = await browser.open(`${server.url}#/jobs/mine`);
  await tab.page.getByText('running').waitFor();
  return { server, tab };
}

const viewer: Token = { name: 'eva', role: 'VIEWER', sha256: '', createAtMs: 0 };
const tokens = {
  find: (text: string) => (text === 'gnnd_known' ? viewer : null),
  isEmpty: () => false,
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
    await page.getByText('epoch 150').first().waitFor();
    server.jobs.transition('SUCCEEDED', { endAtMs: 1_700_000_009_000 });
    await page.getByText('succeeded').waitFor();
    expect(complaints).toEqual([]);
  });

  it('shows the loss and the metric of a job that has ended without a result', async () => {
    const server = await start();
    server.jobs.transition('FAILED', { attempts: [attempt], endAtMs: 1_700_000_009_000 });
    server.jobs.endEpochs(3);
    const { page } = await browser.open(server.url);
    const row = page.getByRole('row', { name: /mine/ });
    const last = epochReport(2);
    await row.getByRole('cell', { name: String(Number(last.loss.toPrecision(3))) }).waitFor();
    await row.getByText(/^accuracy \d+\.\d %$/).waitFor();
  });

  it('says of each thing what it is', async () => {
    const { tab } = await training();
    const { page } = tab;
    for (const name of ['Dataset', 'Model', 'Made']) {
      await page.getByRole('term').filter({ hasText: name }).waitFor();
    }
    await page.getByText('Prefetch on: as asked for').waitFor();
    await page.getByText('Pinned rows: 30.0 % of the rows').waitFor();
    await page.getByRole('rowheader', { name: 'split, 1 Sampler + 1 Trainer' }).waitFor();
    await page.getByText('10.0 % of the rows, as asked for; ordered by COMBINED').waitFor();
    // The plan has nobody who stands by.
    expect(await page.getByText('standby Trainers keep').count()).toBe(0);
  });

  it('has no queue and no cache of an inference, which has neither', async () => {
    const server = await start();
    const { effectiveSpec, encoded: now } = server.jobs.get('mine');
    const spec = { ...effectiveSpec, kind: 'INFERENCE' as const };
    const encoded = { ...now, effectiveSpec: encodeSpec(spec) };
    server.jobs.transition('RUNNING', { attempts: [attempt], effectiveSpec: spec, encoded });
    const { page } = await browser.open(`${server.url}#/jobs/mine`);
    await page.getByRole('heading', { name: 'Plan' }).waitFor();
    for (const title of ['Queue', 'Cache', 'Loss and accuracy']) {
      expect(await page.getByText(title, { exact: true }).count()).toBe(0);
    }
  });

  it('draws ten thousand epochs a few times, not ten thousand', async () => {
    const { server, tab } = await training();
    const { page } = tab;
    for (let told = 1; told <= 20; told += 1) {
      server.jobs.endEpochs(500);
      await page.getByText(`${(500 * told).toLocaleString('en')} of`).waitFor();
    }
    await page
      .getByText(/epoch (9.{2,3}|10.?000)/)
      .first()
      .waitFor();
    const messages = server.events.filter(
      ({ kind, method }) => kind === 'sent' && method === 'WatchJob',
    ).length;
    expect(messages).toBeGreaterThan(100);
    const chart = page.getByRole('figure').filter({ hasText: 'Loss and accuracy' });
    const draws = Number(await chart.getAttribute('data-draws'));
    expect(draws).toBeGreaterThan(0);
    // A draw shows all that came since the one before: fewer than the messages that caused them.
    expect(draws).toBeLessThan(messages);
    const shown = await page.getByRole('slider', { name: 'Loss' }).getAttribute('aria-valuemax');
    expect(Number(shown)).toBeLessThan(1000);
  });

  it('is read with the keyboard alone', async () => {
    const { server, tab } = await training();
    const { page } = tab;
    server.jobs.endEpochs(3);
    await page.getByText('epoch 3').first().waitFor();
    const reached = new Set<string>();
    for (let presses = 0; presses < 20; presses += 1) {
      await page.keyboard.press('Tab');
      reached.add(String(await page.evaluate('document.activeElement?.ariaLabel')));
    }
    for (const name of ['Loss and accuracy', 'Time', 'Queue', 'Where the time went']) {
      expect(reached).toContain(name);
    }
    const chart = page.getByRole('slider', { name: 'Loss and accuracy' });
    await chart.focus();
    await page.keyboard.press('Home');
    await page.getByText('epoch 1').first().waitFor();
    expect(await chart.getAttribute('aria-valuetext')).toContain('epoch 1, loss');
    const lanes = page.getByRole('slider', { name: 'Time' });
    await lanes.focus();
    await page.keyboard.press('Home');
    await page.keyboard.press('ArrowRight');
    await page.getByText('cpu:1 Trainer trains 25 %').waitFor();
    await page.getByText('cpu:0 Sampler samples 60 %').waitFor();
  });

  it('asks for a token where the daemon does, and takes one behind the #', async () => {
    const server = await start({ door: 'NETWORK' }, {}, tokens);
    const { page } = await browser.open(server.url);
    await page.getByLabel('Token').fill('gnnd_wrong');
    await page.keyboard.press('Enter');
    await page.getByRole('alert').getByText('nobody has this token').waitFor();
    await page.getByLabel('Token').fill('gnnd_known');
    await page.keyboard.press('Enter');
    await page.getByRole('row', { name: /mine/ }).waitFor();
    expect(await page.context().cookies()).toEqual([]);
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByLabel('Token').waitFor();
    const linked = await browser.open(`${server.url}#token=gnnd_known`);
    await linked.page.getByRole('row', { name: /mine/ }).waitFor();
    expect(linked.page.url()).not.toContain('gnnd_known');
  });

  it('shows what others wrote as text', async () => {
    const server = await start();
    const { page, complaints } = await browser.open(server.url);
    const evil = '<img src=x onerror="document.title=1"><script>document.title=2</script>';
    server.jobs.waitsFor(evil);
    await page.getByText(evil).first().waitFor();
    expect(await page.title()).toBe('gnnd');
    expect(complaints).toEqual([]);
  });

  it('holds no stream while it is hidden, and goes on where it was', async () => {
    const { server, tab } = await training();
    const turn = (hidden: boolean) =>
      tab.page.evaluate(`
        Object.defineProperty(document, 'hidden', { value: ${hidden}, configurable: true });
        document.dispatchEvent(new Event('visibilitychange'));
      `);
    const handled = () =>
      server.events.filter(({ kind, method }) => kind === 'handled' && method === 'WatchJob');
    expect(server.api.watchCount()).toBe(1);
    await turn(true);
    await expect.poll(() => handled().length, { timeout: hangMs }).toBe(1);
    expect(server.api.watchCount()).toBe(0);
    server.jobs.endEpochs(7);
    await turn(false);
    await tab.page.getByText('epoch 7').first().waitFor();
    const listed = server.events.filter(({ method }) => method === 'ListEpochs');
    expect(listed).toEqual([]);
  });

  it('says that the daemon is gone, and goes on when it is back', async () => {
    const { server, tab } = await training();
    await tab.page.route('**/api/**', (route) => route.abort());
    server.jobs.remove();
    await tab.page.getByText('the job was deleted').waitFor();
    await tab.page.goto(`${server.url}#/`);
    await tab.page.getByText('The daemon cannot be reached').first().waitFor();
    await tab.page.unroute('**/api/**');
    await tab.page.getByRole('heading', { name: 'Jobs' }).waitFor();
    await tab.page.getByText('The daemon cannot be reached').first().waitFor({ state: 'hidden' });
  });
});
