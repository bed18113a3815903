import { loadCore, loadTrain } from '../../src/native/load.ts';

/** src/native/gen as the addons declare it: beside its functions each has what its tables make. */

interface Declaration {
  readonly name: string;
  readonly text: string;
}

/** The files' names and texts. */
export function contractFiles(): ReadonlyMap<string, string> {
  const parts = [loadCore(), loadTrain()].flatMap(
    (addon) => (addon as unknown as { declarations: readonly Declaration[] }).declarations,
  );
  const homes = new Map<string, string>(
    parts.flatMap(({ name, text }) =>
      [...text.matchAll(/^export (?:interface|type) (\w+)/gm)].map(
        ([, type = '']) => [type, `./${name}.ts`] as const,
      ),
    ),
  );
  return new Map(parts.map((part) => [`${part.name}.ts`, fileOf(part, homes)]));
}

function fileOf({ name, text }: Declaration, homes: ReadonlyMap<string, string>): string {
  const code = text.replace(/\/\*\*.*\*\//g, '');
  const needed = new Map<string, string[]>();
  for (const word of [...new Set(code.match(/\w+/g))].sort()) {
    const home = homes.get(word);
    if (home === undefined || home === `./${name}.ts`) continue;
    needed.set(home, [...(needed.get(home) ?? []), word]);
  }
  const imports = [...needed]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([home, types]) => `import type { ${types.join(', ')} } from '${home}';\n`);
  const notice = '// Made by "npm run build:contract" from the tables in native/node.\n\n';
  return `${notice}${imports.join('')}${imports.length > 0 ? '\n' : ''}${text}`;
}
