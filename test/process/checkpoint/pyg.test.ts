import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { repository } from '../../support/daemon.ts';
import { geometricPython } from '../../support/python.ts';
import { skipped } from '../../support/skipped.ts';

/** Checkpoints against torch_geometric, which set-up of tests puts into .cache. */

const exporter = join(repository, 'build', 'native', 'gnnd_pyg_export');
const python = existsSync(exporter) ? await geometricPython() : null;
const isSkipped =
  python === null &&
  skipped('checkpoints against torch_geometric', `no torch_geometric, or no ${exporter}`);

describe.skipIf(isSkipped)('a checkpoint', () => {
  const folder = mkdtempSync(join(tmpdir(), 'gnnd-pyg-'));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  it('loads into the torch_geometric model of its kind, which gives the same logits', async () => {
    execFileSync(exporter, [folder]);
    const script = join(repository, 'test', 'process', 'checkpoint', 'pyg_compat.py');
    // It fails with the name of a model that does not fit, or whose logits differ.
    const printed = await python?.([script, folder]);
    const models = readdirSync(folder).filter((name) => name !== 'graph' && name !== 'typed');
    const typed = readdirSync(join(folder, 'typed')).filter((name) => name !== 'graph');
    expect(models.length).toBeGreaterThan(10);
    expect(typed.length).toBeGreaterThan(10);
    expect(printed?.trim().split('\n')).toHaveLength(models.length + typed.length);
  });
});
