import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { repository } from '../support/daemon.ts';

const hasNvcc = spawnSync('nvcc', ['--version'], { stdio: 'ignore' }).status === 0;

test.skipIf(!hasNvcc)('what decides bits compiles as device code, without a warning', () => {
  const folder = mkdtempSync(join(tmpdir(), 'gnnd-draw-'));
  const output = join(folder, 'draw.cubin');
  const language = ['-std=c++20', '-fmad=false', '--expt-relaxed-constexpr'];
  const strict = ['-Werror', 'all-warnings', '-arch=sm_90', '-cubin'];
  const source = join(repository, 'native/test/core/draw/device.cu');
  try {
    const include = ['-I', join(repository, 'native')];
    execFileSync('nvcc', [...language, ...strict, ...include, '-o', output, source]);
    expect(statSync(output).size).toBeGreaterThan(1000);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

if (!hasNvcc) process.stdout.write('SKIPPED: core/draw as device code (no nvcc)\n');
