import { posix } from 'node:path';
import { codeOnly, lineOf, type Source, type Violation } from './sources.ts';

/** Exports that nobody uses. */

/** Exports that tests alone use, each with what the test could not see without it. */
const forTests: Readonly<Record<string, string>> = {
  'src/cli/read/spec-hints.ts#foreignFields': 'hints name fields, which must exist',
  'src/pool/worker.ts#runCall': 'threads of the pool call it by its name',
  'src/cli/show/manual.ts#manualOf': '`npm run build:man` calls it',
};

const declaration =
  /^export (?:async |abstract )?(?:const|let|function\*?|class|interface|type) (?<name>\w+)/gm;

/** `users` import from the files of src/: src/ itself and bench/. Paths count from the root. */
export function exportViolations(
  files: readonly Source[],
  users: readonly Source[],
  waivers: Readonly<Record<string, string>> = forTests,
): readonly Violation[] {
  const used = new Set(users.flatMap(usesOf));
  return files.flatMap(({ path, text }) => {
    const code = codeOnly(text, 'ts');
    if (used.has(`${path}#*`)) return [];
    return [...code.matchAll(declaration)].flatMap((match) => {
      const name = match.groups?.['name'] ?? '';
      const isUsed = used.has(`${path}#${name}`) || timesIn(code, name) > 1;
      const isExempt = `${path}#${name}` in waivers;
      if (isUsed !== isExempt) return [];
      const message = isUsed ? `${name} has a user: no waiver is needed` : `nobody uses ${name}`;
      return [{ path, line: lineOf(text, match.index), message }];
    });
  });
}

/** `path#name` of everything that a file imports or passes on; `path#*` where it takes all. */
function usesOf({ path, text }: Source): readonly string[] {
  const code = codeOnly(text, 'ts');
  const clauses = /^(?:import|export)\b(?<names>[^;'"=()]*?)\bfrom\s*'(?<blank> *)'/gm;
  const named = [...code.matchAll(clauses)].flatMap((match) => {
    const names = match.groups?.['names'] ?? '';
    const end = match.index + match[0].length - 1;
    const from = text.slice(end - (match.groups?.['blank'] ?? '').length, end);
    const list = /\{(?<list>[^}]*)\}/.exec(names)?.groups?.['list'];
    const target = posix.join(posix.dirname(path), from);
    if (list === undefined) return [`${target}#*`];
    const bound = list.split(',').map(
      (one) =>
        one
          .trim()
          .replace(/^type /, '')
          .split(' ')[0],
    );
    return bound.map((name) => `${target}#${name}`);
  });
  const dynamic = [...text.matchAll(/\bimport\(\s*'(?<from>[^']+)'/g)].map(
    (match) => `${posix.join(posix.dirname(path), match.groups?.['from'] ?? '')}#*`,
  );
  return [...named, ...dynamic];
}

function timesIn(code: string, name: string): number {
  return [...code.matchAll(new RegExp(`\\b${name}\\b`, 'g'))].length;
}
