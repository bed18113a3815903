// Puts the program that reads formats of other libraries (src/python/gnnd_formats) into dist.
import { cpSync, rmSync } from 'node:fs';
import { basename } from 'node:path';

const made = 'dist/python/gnnd_formats';
rmSync(made, { recursive: true, force: true });
cpSync('src/python/gnnd_formats', made, {
  recursive: true,
  filter: (path) => basename(path) !== '__pycache__',
});
