import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { pluginFilesIn } from '../../../src/artifacts/plugin-files.ts';
import { temporaryFolder } from '../../support/at-end.ts';

const root = temporaryFolder('gnnd-plugins-');
const folder = join(root, 'plugins');
mkdirSync(join(folder, 'sub'), { recursive: true });
writeFileSync(join(folder, 'sub', 'mine.so'), 'bytes');
writeFileSync(join(root, 'outside.so'), 'bytes');
symlinkSync(join(root, 'outside.so'), join(folder, 'leads-out.so'));
symlinkSync(join(folder, 'sub', 'mine.so'), join(root, 'leads-in.so'));
writeFileSync(join(folder, 'large.so'), '');
truncateSync(join(folder, 'large.so'), 2 ** 28 + 1);
execFileSync('mkfifo', [join(folder, 'fifo')]);

const find = pluginFilesIn(folder);
const lookup = (path: string) => find(path, 'SAMPLER');
const sha256 = createHash('sha256').update('bytes').digest('hex');

test('a regular file in the folder is answered with its digest, also by a link to it', () => {
  expect(lookup(join(folder, 'sub', 'mine.so'))).toEqual({ sha256 });
  expect(lookup(join(folder, '..', 'plugins', 'sub', 'mine.so'))).toEqual({ sha256 });
  expect(lookup(join(root, 'leads-in.so'))).toEqual({ sha256 });
});

test.each([
  ['a relative path', 'sub/mine.so', /expected an absolute path/],
  ['a file elsewhere', join(root, 'outside.so'), /is not in .*plugins_dir/],
  ['a way out of the folder', join(folder, '..', 'outside.so'), /is not in/],
  ['a link that leads out', join(folder, 'leads-out.so'), /is not in/],
  ['a folder', join(folder, 'sub'), /^is a folder, expected a regular file$/],
  ['a FIFO', join(folder, 'fifo'), /^is a FIFO, expected a regular file$/],
  ['the folder itself', folder, /is not in/],
  ['a device', '/dev/zero', /is not in/],
  ['nothing', join(folder, 'none.so'), /there is no such file/],
  ['a file too large to be read at creation', join(folder, 'large.so'), /at most 268435456/],
])('%s is refused', (_, path, problem) => {
  expect(lookup(path)).toEqual({ problem: expect.stringMatching(problem) });
});

test('without a folder nothing may be loaded', () => {
  expect(pluginFilesIn('')(join(folder, 'sub', 'mine.so'), 'SAMPLER')).toEqual({
    problem: expect.stringContaining('plugins_dir is not set'),
  });
});

/** The parts of a ZIP archive that are looked at: its first bytes, and names in its directory. */
function archive(name: string, members: readonly string[]): string {
  const path = join(folder, name);
  const directory = members.map((member) => {
    const entry = Buffer.alloc(46);
    entry.write('PK\x01\x02', 'latin1');
    entry.writeUInt16LE(member.length, 28);
    return Buffer.concat([entry, Buffer.from(member)]);
  });
  writeFileSync(path, Buffer.concat([Buffer.from('PK\x03\x04data', 'latin1'), ...directory]));
  return path;
}

test('a model is a TorchScript module of the user, as far as that shows without running it', () => {
  const rest = ['m/data.pkl', 'm/data/0', 'm/version'];
  const linear = 'm/code/__torch__/torch/nn/modules/linear.py';
  const own = archive('own.pt', [...rest, 'm/code/__torch__.py', linear, `${linear}.debug_pkl`]);
  expect(find(own, 'MODEL')).toEqual({ sha256: expect.any(String) });
  const problems = (path: string) => find(path, 'MODEL');
  expect(problems(archive('state.pt', rest))).toEqual({
    problem: expect.stringContaining('a state_dict'),
  });
  expect(problems(archive('linear.pt', [...rest, linear, `${linear}.debug_pkl`]))).toEqual({
    problem: expect.stringContaining('have no method layer'),
  });
  expect(problems(join(folder, 'sub', 'mine.so'))).toEqual({
    problem: 'is no file that torch.jit.save wrote',
  });
  writeFileSync(join(folder, 'empty.pt'), '');
  expect(problems(join(folder, 'empty.pt'))).toEqual({
    problem: expect.stringContaining('no file'),
  });
});
