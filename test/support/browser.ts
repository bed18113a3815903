import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { type BrowserContext, chromium, type Page } from 'playwright-core';
import { skipped } from './skipped.ts';
import { hangMs } from './until.ts';

/** Debian's Chromium without a screen, for tests of the page. */

const executable = (process.env['PATH'] ?? '')
  .split(delimiter)
  .map((folder) => join(folder, 'chromium'))
  .find(existsSync);

/** Whether tests of the page cannot run; says so. */
export function lacksChromium(tests: string): boolean {
  if (executable !== undefined) return false;
  return skipped(tests, 'no chromium; sudo apt-get install chromium fonts-dejavu-core');
}

export interface Look {
  readonly width: number;
  readonly height: number;
  readonly colorScheme: 'light' | 'dark';
}

export interface Browser {
  /** A tab of a profile of its own; what the page says on its console is kept. */
  open(url: string, look?: Partial<Look>): Promise<Tab>;
  close(): Promise<void>;
}

export interface Tab {
  readonly page: Page;
  /** Errors of the page and of its policy. */
  readonly complaints: readonly string[];
}

const flags = [
  ...['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run'],
  ...['--disable-background-networking', '--disable-component-update', '--disable-sync'],
  '--hide-scrollbars',
];

export function createBrowser(): Browser {
  const opened: { readonly folder: string; readonly context: BrowserContext }[] = [];
  return {
    async open(url, look = {}) {
      const folder = mkdtempSync(join(tmpdir(), 'gnnd-chromium-'));
      const context = await chromium.launchPersistentContext(folder, {
        executablePath: executable ?? '',
        args: flags,
        viewport: { width: look.width ?? 1200, height: look.height ?? 900 },
        colorScheme: look.colorScheme ?? 'light',
        reducedMotion: 'reduce',
        locale: 'en-GB',
        timezoneId: 'UTC',
      });
      context.setDefaultTimeout(hangMs);
      opened.push({ folder, context });
      const page = context.pages()[0] ?? (await context.newPage());
      const complaints: string[] = [];
      page.on('pageerror', (error) => complaints.push(error.message));
      page.on('console', (message) => {
        if (message.type() === 'error') complaints.push(message.text());
      });
      await page.goto(url);
      return { page, complaints };
    },
    async close() {
      for (const { folder, context } of opened.splice(0)) {
        await context.close();
        rmSync(folder, { recursive: true, force: true });
      }
    },
  };
}
