import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parseAllDocuments, stringify } from 'yaml';
import { temporaryFolder } from '../support/at-end.ts';
import { repository } from '../support/daemon.ts';
import { findPython } from '../support/python.ts';
import { skipped } from '../support/skipped.ts';

/** The manifests of deploy/kubernetes: what the schemas of Kubernetes say, and what gnnd says. */

const folder = join(repository, 'deploy', 'kubernetes');
const schemas = join(repository, '.cache', 'kubernetes');
const scratch = temporaryFolder('gnnd-kubernetes-');

interface Container {
  readonly image: string;
  readonly args: readonly string[];
}

interface JobManifest {
  readonly kind: string;
  readonly spec: { readonly template: { readonly spec: { readonly containers: Container[] } } };
}

/** Jobs as they stand, and those that a JobSet makes. */
function jobsIn(file: string): readonly JobManifest[] {
  const documents = parseAllDocuments(readFileSync(join(folder, file), 'utf8'));
  return documents.flatMap((document) => {
    expect(document.errors).toEqual([]);
    const manifest = document.toJS({ maxAliasCount: 10 });
    if (manifest.kind === 'Job') return [manifest];
    if (manifest.kind !== 'JobSet') return [];
    return manifest.spec.replicatedJobs.map(
      ({ name, template }: { name: string; template: { spec: object } }) => ({
        ...{ apiVersion: 'batch/v1', kind: 'Job', metadata: { name }, spec: template.spec },
      }),
    );
  });
}

const files = readdirSync(folder);
const jobs = files.flatMap(jobsIn);

test('are what Kubernetes takes, strictly', async (context) => {
  const python = await findPython('torch');
  if (python === null || !existsSync(schemas)) {
    return context.skip(skipped('manifests of Kubernetes', 'no .cache/kubernetes'));
  }
  expect(jobs.length).toBe(4);
  const paths = jobs.map((job, index) => {
    const path = join(scratch, `${index}.yaml`);
    writeFileSync(path, stringify(job));
    return path;
  });
  const validate = (...given: string[]) => {
    const args = ['-m', 'kubernetes_validate', '--strict', ...given];
    const env = { ...process.env, PYTHONPATH: schemas };
    const { status, stdout, stderr } = spawnSync(python, args, { env, encoding: 'utf8' });
    return { status, said: stdout + stderr };
  };
  const { status, said } = validate(...paths, join(folder, 'job.yaml'));
  expect(said.match(/passed for resource job\//g)).toHaveLength(5);
  expect(status, said).toBe(0);
  // It would say so.
  const wrong = join(scratch, 'wrong.yaml');
  writeFileSync(wrong, stringify(jobs[0]).replace('restartPolicy', 'restartPolice'));
  expect(validate(wrong).status).not.toBe(0);
});

test('start gnnd with flags that it has, from the image of this version', () => {
  const main = join(repository, 'dist', 'main.js');
  const help = execFileSync(process.execPath, [main, 'run', '--help'], { encoding: 'utf8' });
  const { version } = JSON.parse(readFileSync(join(repository, 'package.json'), 'utf8'));
  for (const { spec } of jobs) {
    for (const { image, args } of spec.template.spec.containers) {
      expect(image).toBe(`gnnd:${version}`);
      expect(args[0]).toBe('run');
      const flags = args.slice(1).map((word) => /^--[a-z-]+/.exec(word)?.[0] ?? word);
      expect(flags.filter((flag) => !help.includes(`${flag} `))).toEqual([]);
      expect(flags).toContain('--state-dir');
    }
  }
});
