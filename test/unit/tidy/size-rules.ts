import { codeOnly, lineOf, type Source, type Violation } from './sources.ts';

/** How much a reader has to hold in the head at once. */

export const limits = { fileLines: 500, lineColumns: 100, functionLines: 70 };

export function languageOf(path: string): 'ts' | 'cc' | 'py' {
  if (path.endsWith('.py')) return 'py';
  return /\.(h|cc|cuh?)$/.test(path) ? 'cc' : 'ts';
}

/** All violations of one file of TypeScript, JavaScript, C++, Python or protobuf. */
export function sizeViolations(file: Source): readonly Violation[] {
  const { path, text } = file;
  const lines = text.split('\n');
  if (lines.at(-1) === '') lines.pop();
  const tooWide = lines.flatMap((line, i) => {
    const columns = [...line].length;
    if (columns <= limits.lineColumns || isOneLiteral(line)) return [];
    return [{ path, line: i + 1, message: `${columns} columns, at most ${limits.lineColumns}` }];
  });
  const tooLong = lines.length <= limits.fileLines ? [] : [fileViolation(path, lines.length)];
  const functions = path.endsWith('.proto') ? [] : functionsOf(file);
  const tooDeep = functions
    .filter((found) => found.lines > limits.functionLines)
    .map(({ line, lines: count }) => {
      const message = `the function has ${count} lines, at most ${limits.functionLines}`;
      return { path, line, message };
    });
  return [...tooLong, ...tooWide, ...tooDeep];
}

/** Wide lines of a page's prose. Tables and code blocks cannot be wrapped. */
export function pageViolations({ path, text }: Source): readonly Violation[] {
  const prose = text.replace(/^```[\s\S]*?^```/gm, (block) => block.replace(/[^\n]/g, ''));
  return prose.split('\n').flatMap((line, i) => {
    const columns = [...line].length;
    if (columns <= limits.lineColumns || /^(\s*\|| {4})/.test(line)) return [];
    return [{ path, line: i + 1, message: `${columns} columns, at most ${limits.lineColumns}` }];
  });
}

function fileViolation(path: string, count: number): Violation {
  return { path, line: 0, message: `${count} lines, at most ${limits.fileLines}` };
}

/** A formatter does not break text, and a broken one cannot be searched for. */
function isOneLiteral(line: string): boolean {
  return /^\s*(['"`]).*\1[,;)]*$/.test(line);
}

export interface FoundFunction {
  /** Where its body opens. */
  readonly line: number;
  /**
   * From the line of the opening brace to that of the closing one, without the lines inside
   * functions in it: a factory that lists its methods is a class in other words.
   */
  readonly lines: number;
}

/**
 * Functions with a body in braces, found in formatted code by what stands before the brace. A suite
 * of tests (`describe`) is a list and no function; neither are classes, types, namespaces and data.
 */
export function functionsOf({ path, text }: Source): readonly FoundFunction[] {
  const language = languageOf(path);
  if (language === 'py') return pythonFunctions(text);
  const code = language === 'ts' ? codeOnly(text, 'ts') : withoutDirectives(codeOnly(text, 'cc'));
  const opensFunction = language === 'ts' ? opensTsFunction : opensCcFunction;
  const found: FoundFunction[] = [];
  const open: { readonly start: number; nestedLines: number }[] = [];
  for (const { 0: brace, index } of code.matchAll(/[{}]/g)) {
    if (brace === '{') {
      open.push({ start: index, nestedLines: 0 });
      continue;
    }
    const block = open.pop();
    if (block === undefined) throw new Error(`${path}: braces do not match`);
    const outer = open.at(-1) ?? block;
    if (!opensFunction(code, block.start)) {
      outer.nestedLines += block.nestedLines;
      continue;
    }
    const line = lineOf(code, block.start);
    const lines = lineOf(code, index) - line + 1;
    found.push({ line, lines: lines - block.nestedLines });
    outer.nestedLines += Math.max(0, lines - 2);
  }
  if (open.length > 0) throw new Error(`${path}: braces do not match`);
  return found;
}

/** Finds functions by indentation, as the formatter leaves it; docstrings do not count. */
function pythonFunctions(text: string): readonly FoundFunction[] {
  const lines = text.split('\n');
  return lines.flatMap((line, index) => {
    const [, indent] = /^( *)(?:async )?def \w+\(/.exec(line) ?? [];
    if (indent === undefined) return [];
    const isInside = (other: string) => other.startsWith(`${indent} `) || other === '';
    let body = index + 1;
    while (!/:$/.test(lines[body - 1] ?? ':')) body += 1;
    let end = body;
    while (end < lines.length && isInside(lines[end] ?? '')) end += 1;
    while (end > body && lines[end - 1] === '') end -= 1;
    const inside = `${lines.slice(body, end).join('\n')}\n`;
    const said = /^\s+"{3}[\s\S]*?"{3}\n/.exec(inside)?.[0] ?? '';
    return [{ line: index + 1, lines: end - index - (said.split('\n').length - 1) }];
  });
}

function withoutDirectives(code: string): string {
  return code.replace(/^[ \t]*#.*(\\\n.*)*/gm, (text) => text.replace(/[^\n]/g, ' '));
}

/** The formatter ends the line with the brace of any body that is longer than a line. */
function opensTsFunction(code: string, brace: number): boolean {
  const [line = ''] = code.slice(brace).split('\n', 1);
  if (line.trim() !== '{') return false;
  const opening = openingLine(code.slice(0, brace).split('\n'));
  const before = (code.slice(0, brace).split('\n').at(-1) ?? '').trim();
  if (/^(\}\s*)?(else|if|for|while|switch|catch|try|do|describe)\b/.test(opening)) return false;
  if (/^(\}\s*)?(else|catch|finally)\b/.test(before)) return false;
  if (/^(export\s+)?(abstract\s+)?(class|interface|type)\s/.test(opening)) return false;
  // An arrow; a parameter list and at most a return type; or such a type that ends in braces.
  return /=>$/.test(before) || /\)(\s*:[^=?]*)?$/.test(before) || /^\}.*>?$/.test(before);
}

/** Where the statement begins whose last line may be the tail of a list that spans lines. */
function openingLine(lines: readonly string[]): string {
  const last = lines.at(-1) ?? '';
  if (!/^\s*[)\]}]/.test(last)) return last.trim();
  const indent = /^\s*/.exec(last)?.[0] ?? '';
  const starts = lines.slice(0, -1).filter((line) => {
    return line.startsWith(indent) && /^[^\s)\]}]/.test(line.slice(indent.length));
  });
  return (starts.at(-1) ?? last).trim();
}

function opensCcFunction(code: string, brace: number): boolean {
  const header = headerBefore(code, brace);
  if (/^(else\s+)?(if|for|while|switch|catch|do|else|try)\b/.test(header)) return false;
  if (/^(template\s*<[^{]*>\s*)?(class|struct|union|enum|namespace)\b/.test(header)) return false;
  return /[)\]]/.test(header) && !/(=\s*|^extern\b.*)$/.test(header) && !/^return\b/.test(header);
}

/** The text from the end of the statement or block before; parentheses are skipped whole. */
function headerBefore(code: string, brace: number): string {
  let depth = 0;
  let at = brace - 1;
  for (; at >= 0; at -= 1) {
    const char = code[at] ?? '';
    if (char === ')') depth += 1;
    else if (char === '(') depth -= 1;
    if (depth < 0 || (depth === 0 && /[;{}]/.test(char))) break;
  }
  return code.slice(at + 1, brace).trim();
}
