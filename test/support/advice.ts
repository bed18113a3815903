import type { Command } from 'commander';
import { parseSync } from 'vite';
import { nearestOf } from '../../src/spec/nearest.ts';
import { isNamed, programOf } from './commands.ts';

/** What texts tell people to type, found in sources and in what programs print. */

/** Stands where a text has a value that only a running program knows. */
const placeholder = 'VALUE';

interface Node {
  readonly type: string;
  readonly [key: string]: unknown;
}

/** All texts of a TypeScript or JavaScript source; pieces that are joined by + are one text. */
export function textsOf(path: string, source: string): readonly string[] {
  const { program, errors } = parseSync(path.replace(/\.mjs$/, '.js'), source);
  if (errors.length > 0) throw new Error(`${path} cannot be parsed: ${errors[0]?.message}`);
  const texts: string[] = [];
  const walk = (value: unknown): void => {
    if (Array.isArray(value)) for (const each of value) walk(each);
    if (!isNode(value)) return;
    const text = textOf(value);
    if (text !== null) texts.push(text);
    // Parts of a text that is a whole are no texts; what stands within its values may be one.
    for (const part of text === null ? Object.values(value) : valuesIn(value)) walk(part);
  };
  walk(program);
  return texts;
}

function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && 'type' in value;
}

function textOf(node: Node): string | null {
  if (node.type === 'Literal' && typeof node['value'] === 'string') return node['value'];
  if (node.type === 'JSXText') return String(node['value']).replaceAll(/\s+/g, ' ');
  if (node.type === 'TemplateLiteral') {
    const quasis = node['quasis'] as readonly { readonly value: { readonly cooked: string } }[];
    return quasis.map(({ value }) => value.cooked).join(placeholder);
  }
  if (node.type !== 'BinaryExpression' || node['operator'] !== '+') return null;
  const sides = [node['left'], node['right']].map((side) => (isNode(side) ? textOf(side) : null));
  if (sides.every((side) => side === null)) return null;
  return sides.map((side) => side ?? placeholder).join('');
}

function valuesIn(node: Node): readonly unknown[] {
  if (node.type === 'TemplateLiteral') return [node['expressions']];
  if (node.type !== 'BinaryExpression') return [];
  return [node['left'], node['right']].flatMap((side) => {
    if (!isNode(side)) return [];
    return textOf(side) === null ? [side] : valuesIn(side);
  });
}

/** Texts of a Python source, roughly: its lines, with strings joined that follow each other. */
export function pythonTexts(source: string): readonly string[] {
  const joined = source.replaceAll(/"\s*\n\s*f?"/g, '').replaceAll(/\{[^{}\n]*\}/g, placeholder);
  return [...joined.matchAll(/"((?:[^"\\\n]|\\.)*)"/g)].map(([, text = '']) => text);
}

/** A command that a text says. */
export interface Advice {
  readonly line: string;
  /** Where a sentence goes on: arguments that may be words of it. */
  readonly bare: readonly string[];
}

/** The commands of gnnctl and gnnd that a text says, each up to where its words end. */
export function commandsIn(text: string): readonly Advice[] {
  const names = text.matchAll(/(?<![\w./@:-])(gnnctl|gnnd) (?=[a-z-])/g);
  return [...names].flatMap((match) => {
    const [all, name = ''] = match;
    const advice = takenBy(programOf(name), text.slice(match.index + all.length));
    return advice === null ? [] : [advice];
  });
}

/** Words that lead from a command back to the sentence around it. */
const linking = new Set(['or', 'and', 'then', 'with', 'as', 'for', 'in', 'on', 'to']);

/** What `program` takes of the words that follow its name; null where a sentence goes on. */
function takenBy(program: Command, rest: string): Advice | null {
  const [plain = ''] = /^[^`)"<\n]*/.exec(rest) ?? [];
  const words: string[] = [];
  const bare: string[] = [];
  let command = program;
  let operands = 0;
  let isValue = false;
  let goesOn = false;
  for (const token of plain.match(/'[^']*'|\S+/g) ?? []) {
    const word = token.replace(/[;:,.?]+$/, '');
    const sub = isValue ? undefined : command.commands.find((each) => isNamed(each, word));
    if (sub !== undefined) command = sub;
    else if (isValue || word.startsWith('-')) isValue = !isValue && takesValue(command, word);
    else {
      if (words.length === 0 && isVerb(program, word)) return null;
      goesOn = operands === operandsOf(command) || linking.has(word);
      if (goesOn) break;
      const isKnown = command.registeredArguments[operands]?.argChoices?.includes(word) === true;
      if (!isKnown && /^[a-z]+$/.test(word)) bare.push(word);
      operands += 1;
    }
    words.push(word);
    if (word !== token) break;
  }
  if (words.length === 0) return null;
  return { line: [program.name(), ...words].join(' '), bare: goesOn ? bare : [] };
}

/** Whether a sentence goes on whose subject is the program, rather than a misspelt command. */
function isVerb(program: Command, word: string): boolean {
  const names = program.commands.map((each) => each.name());
  const isLike = nearestOf(word, names) !== null && !names.includes(word.replace(/s$/, ''));
  // Much is said of what gnnd does, and in many forms.
  return !isLike && (program.name() === 'gnnd' || word.endsWith('s'));
}

/** At most; of a group of commands one, which is none of them. */
function operandsOf(command: Command): number {
  if (command.commands.length > 0) return 1;
  const takes = command.registeredArguments;
  return takes.at(-1)?.variadic === true ? Number.POSITIVE_INFINITY : takes.length;
}

function takesValue(command: Command, word: string): boolean {
  if (word.includes('=')) return false;
  for (let at: Command | null = command; at !== null; at = at.parent) {
    const found = at.options.find(({ long, short }) => long === word || short === word);
    if (found !== undefined) return found.required;
  }
  return false;
}
