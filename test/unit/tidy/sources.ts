import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The repository's own text, as the structure tests read it. */

export interface Source {
  /** From the repository's root, with forward slashes. */
  readonly path: string;
  readonly text: string;
}

/** One broken rule; `line` counts from 1, 0 means the file as a whole. */
export interface Violation {
  readonly path: string;
  readonly line: number;
  readonly message: string;
}

export const root = fileURLToPath(new URL('../../..', import.meta.url));

/** Everything a person wrote lies here or directly in the root; the rest is made or fetched. */
const ownFolders = ['.ci', 'bench', 'deploy', 'docs', 'native', 'proto', 'src', 'test'];
const generated = new RegExp(
  [
    '^src/(api|native)/gen/',
    '^src/python/gnnd/v1/',
    '^test/fixtures/',
    '(^|/)__pycache__/',
    '(^|/)node_modules/',
  ].join('|'),
);
const binary = /\.(npz|npy|tgz|gz|png|node)$/;

function filesUnder(folder: string): readonly string[] {
  return readdirSync(join(root, folder), { withFileTypes: true })
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .flatMap((entry) => {
      const path = folder === '' ? entry.name : `${folder}/${entry.name}`;
      return entry.isDirectory() ? filesUnder(path) : entry.isFile() ? [path] : [];
    });
}

/** The paths of all own files, generated and binary ones too. */
export function ownPaths(): readonly string[] {
  // In a worktree .git is a file, which nobody wrote.
  const top = readdirSync(root).filter(
    (name) => name !== '.git' && statSync(join(root, name)).isFile(),
  );
  const all = ownFolders.filter((name) => existsSync(join(root, name))).flatMap(filesUnder);
  return [...top, ...all];
}

/** All own files whose path matches; generated and binary ones left out. */
export function readSources(pattern: RegExp): readonly Source[] {
  return ownPaths()
    .filter((path) => pattern.test(path) && !generated.test(path) && !binary.test(path))
    .map((path) => ({ path, text: readFileSync(join(root, path), 'utf8') }));
}

export function lineOf(text: string, offset: number): number {
  return text.slice(0, offset).split('\n').length;
}

/** `path:line: message`, one a line: an empty list prints as nothing, which is what is expected. */
export function listed(violations: readonly Violation[]): string {
  return violations
    .map(({ path, line, message }) => `${path}${line === 0 ? '' : `:${line}`}: ${message}`)
    .sort()
    .join('\n');
}

/**
 * The text with comments and the insides of string, character and regular-expression literals
 * replaced by spaces: same length, same lines, so that offsets fit the original. Knows enough of
 * TypeScript and C++ for formatted code.
 */
export function codeOnly(text: string, language: 'ts' | 'cc'): string {
  const parts: string[] = [];
  // Braces open since each template's `${`, innermost last: at 0 its closing brace ends it.
  const substitutions: number[] = [];
  const tokens = language === 'ts' ? tsToken : ccToken;
  for (let at = 0; at < text.length; ) {
    tokens.lastIndex = at;
    const [token = text.charAt(at)] = tokens.exec(text) ?? [];
    const inner = substitutions.length - 1;
    const isTemplate =
      language === 'ts' && (token === '`' || (token === '}' && substitutions[inner] === 0));
    if (isTemplate) {
      if (token === '}') substitutions.pop();
      const { piece, opens } = templatePiece(text, at);
      if (opens) substitutions.push(0);
      parts.push(token === '}' ? blank(piece) : keepEnds(piece));
      at += piece.length;
      continue;
    }
    if (inner >= 0) {
      const depth = substitutions[inner] ?? 0;
      substitutions[inner] = depth + (token === '{' ? 1 : token === '}' ? -1 : 0);
    }
    const isLiteral = /^(['"]|R"|\/.)/.test(token);
    parts.push(/^\/[/*]/.test(token) ? blank(token) : isLiteral ? keepEnds(token) : token);
    at += token.length;
  }
  return parts.join('');
}

/** Piece of a template from its start or a substitution's end up to the next one or its end. */
function templatePiece(text: string, start: number): { piece: string; opens: boolean } {
  let end = start + 1;
  while (end < text.length && text[end] !== '`' && !text.startsWith('${', end)) {
    end += text[end] === '\\' ? 2 : 1;
  }
  const opens = text[end] === '$';
  return { piece: text.slice(start, end + (opens ? 2 : 1)), opens };
}

function blank(text: string): string {
  return text.replace(/[^\n]/g, ' ');
}

/** A literal keeps its quotes; anything shorter is itself. Braces of `${` are no blocks. */
function keepEnds(token: string): string {
  if (token.length < 2) return token;
  const last = token.slice(-1) === '{' ? ' ' : token.slice(-1);
  return `${token.slice(0, 1)}${blank(token.slice(1, -1))}${last}`;
}

const comment = /\/\/[^\n]*|\/\*[\s\S]*?\*\//.source;
const double = /"(?:\\[\s\S]|[^"\\\n])*"/.source;
const single = /'(?:\\[\s\S]|[^'\\\n])*'/.source;
// A slash begins a regular expression where no operand can end.
const regex =
  /(?<=(?:[(,=:[!&|?{};\n]|=>|\breturn)\s*)\/(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n[])+\//.source;
const tsToken = new RegExp([comment, double, single, regex, '[^\'"`/{}]+'].join('|'), 'y');
const rawString = /R"(\w*)\([\s\S]*?\)\1"/.source;
// 1'000 is a number: an apostrophe after a digit or letter begins no literal.
const character = /(?<!\w)'(?:\\.|[^'\\\n])+'/.source;
const ccPlain = /(?:(?!R")[^'"/{}])+/.source;
const ccToken = new RegExp([rawString, comment, double, character, ccPlain].join('|'), 'y');
