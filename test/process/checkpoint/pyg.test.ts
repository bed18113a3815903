import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';

/**
 * Checkpoints against torch_geometric 2.8.1, which set-up does not install:
 *
 *   .venv/bin/python -m pip install --target .cache/pyg torch_geometric==2.8.1
 */

const root = fileURLToPath(new URL('../../..', import.meta.url));
const exporter = process.env['GNND_PYG_EXPORT'] ?? join(root, 'build/native/gnnd_pyg_export');
const python = process.env['GNND_PYTHON'] ?? join(root, '.venv/bin/python');
const packages = process.env['GNND_PYG'] ?? join(root, '.cache/pyg');
const environment = { ...process.env, PYTHONPATH: packages };

function missing(): string | undefined {
  if (!existsSync(exporter)) return `${exporter} is not built`;
  const probe = spawnSync(python, ['-c', 'import torch_geometric'], { env: environment });
  return probe.status === 0 ? undefined : 'torch_geometric is not installed';
}

const reason = missing();
if (reason !== undefined) console.warn(`SKIPPED checkpoints against torch_geometric: ${reason}`);

describe.skipIf(reason !== undefined)('a checkpoint', () => {
  const folder = mkdtempSync(join(tmpdir(), 'gnnd-pyg-'));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  it('loads into the torch_geometric model of its kind, which gives the same logits', () => {
    execFileSync(exporter, [folder]);
    const script = fileURLToPath(new URL('pyg_compat.py', import.meta.url));
    const run = spawnSync(python, [script, folder], { env: environment, encoding: 'utf8' });
    expect(run.stderr).not.toContain('Traceback');
    expect(run.status, run.stdout).toBe(0);
    const names = run.stdout.trim().split('\n');
    expect(names).toHaveLength(11);
  }, 120_000);
});
