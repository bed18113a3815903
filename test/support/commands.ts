import { Command, type Option } from 'commander';
import { addCommands } from '../../src/cli/program.ts';
import { program as gnnd } from '../../src/serve.ts';

/** Command lines of gnnctl and gnnd, held against what their programs take; nothing runs. */

export const gnnctl = () => addCommands(new Command('gnnctl'), () => async () => {});

/** The program with its name, as commander knows it. */
export function programOf(name: string): Command {
  return name === 'gnnd' ? gnnd : gnnctl();
}

/** Words of a line as a shell splits them; nothing on our pages has more than quotes. */
export function wordsOf(line: string): readonly string[] {
  return [...line.matchAll(/'([^']*)'|"([^"]*)"|(\S+)/g)].map(
    ([, single, double, plain]) => single ?? double ?? plain ?? '',
  );
}

/** Why the line that starts with `gnnctl` or `gnnd` would be refused as it is; null: it is not. */
export function problemWith(line: string): string | null {
  const [name = '', ...words] = wordsOf(line);
  return problemOf(programOf(name), words);
}

function problemOf(command: Command, words: readonly string[]): string | null {
  command.exitOverride().configureOutput({ writeErr: () => {} });
  try {
    const { operands, unknown } = command.parseOptions([...words]);
    const [first = '', ...others] = operands;
    const sub = command.commands.find((each) => isNamed(each, first));
    if (sub !== undefined) return problemOf(sub, [...others, ...unknown]);
    if (command.commands.length > 0) return `${command.name()} has no command ${first}`;
    if (unknown.length > 0) return `${command.name()} has no option ${unknown[0]}`;
    const missing = command.options.find((option) => isMissing(option, words));
    if (missing !== undefined) return `${command.name()} needs ${missing.long}`;
    const takes = command.registeredArguments;
    const least = takes.filter(({ required }) => required).length;
    const most = takes.at(-1)?.variadic === true ? Number.POSITIVE_INFINITY : takes.length;
    const isRight = operands.length >= least && operands.length <= most;
    return isRight ? null : `${command.name()} takes ${least} to ${most} arguments`;
  } catch (error) {
    return String(error);
  }
}

function isMissing({ mandatory, long, short }: Option, words: readonly string[]): boolean {
  return mandatory && !words.some((word) => word === short || word.split('=')[0] === long);
}

export function isNamed(command: Command, word: string): boolean {
  return command.name() === word || command.aliases().includes(word);
}

/** Every option that any command of either program has. */
export function optionNames(): ReadonlySet<string> {
  const namesOf = (command: Command): readonly string[] => [
    ...command.options.flatMap(({ long, short }) => [long ?? '', short ?? '']),
    ...command.commands.flatMap(namesOf),
  ];
  return new Set(['--help', ...[gnnctl(), gnnd].flatMap(namesOf)]);
}
