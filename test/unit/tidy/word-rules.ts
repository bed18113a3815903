import { lineOf, type Source, type Violation } from './sources.ts';

/** Words that must not stand in any file, and what to write instead. */

interface WordRule {
  readonly word: RegExp;
  readonly instead: string;
}

export const wordRules: readonly WordRule[] = [
  { word: /\b(TODO|FIXME|HACK|XXX)\b/, instead: 'do it, or describe the limit in docs/status.md' },
  // Machines differ: paths come from options, the environment or the file's own place.
  { word: /(?<![\w.~*-])\/(work|root|home)\/\w/, instead: 'a relative path' },
  // Registries are the business of whoever runs npm and pip.
  {
    word: /\/\/(registry|mirror|packages|artifacts|nexus|proxy)[\w-]*\./,
    instead: 'no registry host',
  },
  { word: /\bregistry\.[a-z]\w*\.\w|\bpypi\.\w|\bpythonhosted\b/, instead: 'no registry host' },
  // One word per thing (docs/glossary.md).
  { word: /\bgnndctl\b/, instead: 'gnnctl' },
  { word: /\/healthz\b/, instead: '/livez or /readyz' },
  { word: /\bNodeService\b|\bGetNode(Request|Response)?\b/, instead: 'HostService, GetHost' },
  { word: /\bNODE_DRAINED\b/, instead: 'HOST_DRAINED' },
  { word: /\bgnnctl node\b/, instead: 'gnnctl host' },
  { word: /sampled_vertices/, instead: 'sampled_nodes' },
  { word: /\bspill_oversize\b/, instead: 'nothing: slots are sparse, nothing spills' },
  { word: /\bqueue\.slot_bytes\b/, instead: 'queue.max_bytes' },
  { word: /\b(loader_loop|loader-loop|LOADER)\b/, instead: 'Trainers read rows: no such role' },
  { word: /\bcpu-\d+\b/, instead: 'cpu:0 names a device' },
  { word: /\beslint\b/i, instead: 'Biome' },
];

/** Words that a file must hold, with the reason. A waiver that nothing needs any more fails. */
export const wordWaivers: readonly { path: string; word: string; reason: string }[] = [];

export function wordViolations({ path, text }: Source): readonly Violation[] {
  return wordRules.flatMap(({ word, instead }) =>
    [...text.matchAll(new RegExp(word.source, `${word.flags}g`))].map((match) => ({
      path,
      line: lineOf(text, match.index),
      message: `${match[0]}: instead, ${instead}`,
    })),
  );
}

/** A lockfile names what is installed, not from where. */
export function lockViolations({ path, text }: Source): readonly Violation[] {
  return [...text.matchAll(/"resolved":[^\n]*/g)].map((match) => ({
    path,
    line: lineOf(text, match.index),
    message: `${match[0]}: npm writes it without omit-lockfile-registry-resolved (.npmrc)`,
  }));
}
