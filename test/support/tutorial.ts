import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { repository } from './daemon.ts';

/** The sampler and the model of docs/plugins.md, made as it says. */

export function tutorialCode(language: 'c' | 'python'): string {
  const tutorial = readFileSync(join(repository, 'docs', 'plugins.md'), 'utf8');
  const code = new RegExp(`\`\`\`${language}\\n(.*?)\`\`\``, 's').exec(tutorial)?.[1];
  if (code === undefined) throw new Error(`docs/plugins.md has no ${language}`);
  return code;
}

export function compilePlugin(source: string, target: string): void {
  const include = join(repository, 'native', 'include');
  execFileSync('cc', ['-std=c11', '-O2', '-shared', '-fPIC', '-I', include, source, '-o', target]);
}

/** few_hubs.so in `folder`. */
export function compileTutorialSampler(folder: string): string {
  const source = join(folder, 'few_hubs.c');
  const target = join(folder, 'few_hubs.so');
  writeFileSync(source, tutorialCode('c'));
  compilePlugin(source, target);
  return target;
}
