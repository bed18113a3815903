import { posix } from 'node:path';
import { lineOf, type Source, type Violation } from './sources.ts';

/** Paths that pages and comments name lead to files that exist. */

/** Made by set-up or a build, so a plain clone lacks them. */
const made =
  /^(src\/(api|native)\/gen|src\/python\/gnnd\/v1|man|deploy\/monitoring\/dashboard\.json)(\/|$)/;
/** Belongs to other projects, to the system, or lies beside a checkout. */
const others = /^(doctest|linux|shared\/data)\//;
const folders = '(?:\\.ci|bench|deploy|docs|man|native|proto|src|test)';
const code = '(?:ts|tsx|mjs|py|h|cc|cuh?|proto|cmake)';
const codeFile = new RegExp(`^[\\w{},*.-]+\\.${code}$`);

export class Paths {
  readonly #files: readonly string[];
  readonly #known: ReadonlySet<string>;
  readonly #names: ReadonlySet<string>;

  constructor(files: readonly string[]) {
    this.#files = files;
    this.#names = new Set(files.map((path) => posix.basename(path)));
    const above = (path: string): readonly string[] => {
      const folder = posix.dirname(path);
      return folder === '.' ? [] : [folder, ...above(folder)];
    };
    this.#known = new Set([...files, ...files.flatMap(above)]);
  }

  /** Whether a file or folder has this path, in which * stands for anything within one name. */
  has(path: string): boolean {
    const plain = path.replace(/\/+$/, '');
    if (made.test(plain) || this.#known.has(plain)) return true;
    if (!plain.includes('*')) return false;
    const escaped = plain.replace(/[.+^$()|[\]\\?{}]/g, '\\$&');
    const pattern = escaped.replaceAll('**', '.+').replace(/(?<!\.)\*/g, '[^/]*');
    const matches = new RegExp(`^${pattern}$`);
    return [...this.#known].some((known) => matches.test(known));
  }

  hasName(name: string): boolean {
    if (this.#names.has(name)) return true;
    return this.#files.some((file) => file.endsWith(`/${name}`)) || this.has(`**/${name}`);
  }
}

/** `a/{b,c}.ts` is `a/b.ts` and `a/c.ts`. */
export function expanded(path: string): readonly string[] {
  const [whole, before = '', choices = '', after = ''] = /^(.*?)\{([^{}]*)\}(.*)$/.exec(path) ?? [];
  if (whole === undefined) return [path];
  return choices.split(',').flatMap((choice) => expanded(`${before}${choice}${after}`));
}

/** What stands for something else: <name>, NAME, $dir, %s, … */
function isPlaceholder(path: string): boolean {
  return /[<>$%…~]|\.\.\.|\b[A-Z]{2,}\b(?!\.md)/.test(path);
}

function problemOf(path: string, paths: Paths): string | null {
  if (isPlaceholder(path)) return null;
  const named = path.replace(/:\d+$|#.*$/, '');
  const missing = new RegExp(`^${folders}/`).test(named)
    ? expanded(named).filter((each) => !paths.has(each))
    : codeFile.test(named)
      ? expanded(named).filter((each) => !paths.hasName(each))
      : [];
  return missing.length === 0 ? null : `there is no ${missing.join(', ')}`;
}

/** Paths in backticks of a page. */
export function backtickViolations(page: Source, paths: Paths): readonly Violation[] {
  return [...withoutFences(page.text).matchAll(/`([^`\n]+)`/g)].flatMap((match) =>
    (match[1] ?? '').split(/[\s,;()]+(?![^{]*\})/).flatMap((word) => {
      const message = problemOf(word, paths);
      return message === null
        ? []
        : [{ path: page.path, line: lineOf(page.text, match.index), message }];
    }),
  );
}

/** Links of a page to files and to headings, of itself and of other pages. */
export function linkViolations(
  page: Source,
  paths: Paths,
  pages: ReadonlyMap<string, string>,
): readonly Violation[] {
  return [...withoutFences(page.text).matchAll(/\]\(([^()\s]+)\)/g)].flatMap((match) => {
    const link = match[1] ?? '';
    if (/^[a-z]+:/.test(link)) return [];
    const [file = '', anchor] = link.split('#');
    const target = file === '' ? page.path : posix.join(posix.dirname(page.path), file);
    const text = pages.get(target);
    const lacks = anchor !== undefined && text !== undefined && !anchorsOf(text).has(anchor);
    const message = !paths.has(target) ? `there is no ${target}` : `${target} has no #${anchor}`;
    const isWrong = !paths.has(target) || lacks;
    return isWrong ? [{ path: page.path, line: lineOf(page.text, match.index), message }] : [];
  });
}

/** Paths in comments of sources; native ones may begin below native/. */
export function commentViolations(source: Source, paths: Paths): readonly Violation[] {
  const comment = /(?:^|\s)(?:\/\/|\/\*\*?|\*|#)\s(.*)$/gm;
  const path = new RegExp(`(?<![\\w/.<-])(?:[\\w.{},*-]+/)+[\\w{},*.-]+\\.(?:${code}|md)\\b`, 'g');
  return [...source.text.matchAll(comment)].flatMap((match) =>
    [...(match[1] ?? '').matchAll(path)].flatMap(([named]) => {
      if (isPlaceholder(named) || others.test(named)) return [];
      const below = ['', 'native/', 'src/', `${posix.dirname(source.path)}/`];
      const isThere = (each: string) => below.some((prefix) => paths.has(posix.join(prefix, each)));
      const missing = expanded(named).filter((each) => !isThere(each));
      const line = lineOf(source.text, match.index);
      return missing.map((each) => ({ path: source.path, line, message: `there is no ${each}` }));
    }),
  );
}

/** Anchors as GitHub makes them of headings: a second one of the same words has a number. */
function anchorsOf(text: string): ReadonlySet<string> {
  const headings = [...withoutFences(text).matchAll(/^#+ (.+)$/gm)].map(([, title = '']) =>
    title
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\s_-]/gu, '')
      .replaceAll(' ', '-'),
  );
  return new Set(headings);
}

/** Fenced blocks are somebody's files and output; lines stay. */
function withoutFences(text: string): string {
  return text.replace(/^```[\s\S]*?^```/gm, (block) => block.replace(/[^\n]/g, ' '));
}
