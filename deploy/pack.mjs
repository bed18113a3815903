#!/usr/bin/env node
// `npm pack` runs this before it packs (and with --clean afterwards): compiles what is packed, and
// puts native files of this platform into prebuilt/.
import { rmSync } from 'node:fs';
import { packPrebuilt, prebuiltFolder, python } from './native.mjs';
import { root, run } from './steps.mjs';

process.chdir(root);
rmSync('prebuilt', { recursive: true, force: true });
if (!process.argv.includes('--clean')) {
  await run('pack', process.execPath, ['deploy/setup.mjs', '--sim']);
  await packPrebuilt(prebuiltFolder, (await python()).libraries);
}
