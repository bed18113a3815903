import type { Command } from 'commander';
import { nearestOf } from '../../spec/nearest.ts';

/** What a refused command line may have meant, said below what commander says of it. */
export function explainUsage(program: Command): Command {
  for (const command of [program, ...below(program)]) {
    command.showSuggestionAfterError(false).configureOutput({
      outputError(text, write) {
        const meant = meantIn(text, command, program);
        write(meant === null ? text : `${text}(did you mean ${meant}?)\n`);
      },
    });
  }
  return program;
}

function below(command: Command): readonly Command[] {
  return command.commands.flatMap((each) => [each, ...below(each)]);
}

function meantIn(text: string, command: Command, program: Command): string | null {
  if (text.includes('too many arguments')) return fileMeant(command);
  const [, kind = '', word = ''] = /unknown (command|option) '([^']*)'/.exec(text) ?? [];
  if (kind === 'command') return commandMeant(word, command, program);
  if (kind === 'option') return optionMeant(word, command);
  const [, value = '', choices = ''] =
    /argument '([^']*)' is invalid\. .*?\b(?:are|of) ([\w, -]+)/.exec(text) ?? [];
  return choices === '' ? null : nearestOf(value, choices.split(', '));
}

/** A file that stands without its flag. */
function fileMeant(command: Command): string | null {
  const isFile = command.options.some(({ long }) => long === '--file');
  return isFile ? `${fullName(command)} -f FILE` : null;
}

/** Here, or below another word: `gnnctl import` is `gnnctl dataset import`. */
function commandMeant(word: string, command: Command, program: Command): string | null {
  const namesOf = (each: Command) => [each.name(), ...each.aliases()];
  const here = nearestOf(word, command.commands.flatMap(namesOf));
  if (here !== null) return here;
  const elsewhere = below(program).filter((each) => namesOf(each).includes(word));
  return elsewhere.length === 0 ? null : elsewhere.map(fullName).join(', or ');
}

function optionMeant(word: string, command: Command): string | null {
  if (!word.startsWith('--')) return null;
  const names: string[] = [];
  for (let at: Command | null = command; at !== null; at = at.parent) {
    names.push(...at.options.flatMap(({ long }) => (long == null ? [] : [long.slice(2)])));
  }
  const meant = nearestOf(word.slice(2).split('=')[0] ?? '', names);
  return meant === null ? null : `--${meant}`;
}

function fullName(command: Command): string {
  return command.parent === null ? command.name() : `${fullName(command.parent)} ${command.name()}`;
}
