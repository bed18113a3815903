import type { Argument, Command, Option } from 'commander';

/** Manual pages (roff, man(7)) of a program as commander knows it. */

export interface ManualFacts {
  /** Section 1 or 8. */
  readonly section: number;
  readonly version: string;
  /** Names of exit codes. */
  readonly exitCodes: Readonly<Record<string, number>>;
  /** Other pages, `gnnd(1)`. */
  readonly seeAlso: readonly string[];
}

export function manualOf(program: Command, facts: ManualFacts): string {
  const name = program.name();
  const upper = name.toUpperCase();
  const head = [upper, String(facts.section), '', `gnnd ${facts.version}`, 'User Commands'];
  const lines = [
    '.\\" Made by npm run build from what --help knows.',
    `.TH ${head.map((word) => `"${word}"`).join(' ')}`,
    ...['.SH NAME', `${roff(name)} \\- ${roff(program.description())}`],
    ...['.SH SYNOPSIS', `.B ${roff(name)}`, '[\\fIoptions\\fR] \\fIcommand\\fR ...'],
    ...section('OPTIONS', program.options.flatMap(optionLines)),
    ...section('COMMANDS', leavesOf(program).flatMap(commandLines)),
    ...section('EXIT STATUS', Object.entries(facts.exitCodes).flatMap(exitLines)),
    ...['.SH SEE ALSO', roff(facts.seeAlso.join(', '))],
  ];
  return `${lines.join('\n')}\n`;
}

function section(title: string, lines: readonly string[]): readonly string[] {
  return lines.length === 0 ? [] : [`.SH ${title}`, ...lines];
}

function exitLines([name, code]: readonly [string, number]): readonly string[] {
  return ['.TP', `.B ${code}`, roff(name)];
}

/** Commands that do something, in their order; what only programs call is left out. */
function leavesOf(command: Command): readonly Command[] {
  const below = command.commands.filter((each) => !each.name().startsWith('__'));
  const own = command.parent === null || below.length > 0 ? [] : [command];
  return [...own, ...below.flatMap(leavesOf)];
}

function commandLines(command: Command): readonly string[] {
  const described = command.registeredArguments.filter(({ description }) => description !== '');
  const takes = command.registeredArguments.map(argumentText).join(' ');
  return [
    `.SS ${roff([fullName(command), takes].filter((text) => text !== '').join(' '))}`,
    roff(`${sentence(command.description())}${aliasText(command)}`),
    ...described.flatMap((each) => ['.TP', `.I ${roff(each.name())}`, roff(each.description)]),
    ...command.options.flatMap(optionLines),
  ];
}

function fullName(command: Command): string {
  return command.parent === null ? command.name() : `${fullName(command.parent)} ${command.name()}`;
}

function argumentText(argument: Argument): string {
  const name = `${argument.name()}${argument.variadic ? '...' : ''}`;
  return argument.required ? `<${name}>` : `[${name}]`;
}

function aliasText(command: Command): string {
  const aliases = command.aliases();
  return aliases.length === 0 ? '' : ` Also called ${aliases.join(', ')}.`;
}

function optionLines(option: Option): readonly string[] {
  const choices = option.argChoices === undefined ? [] : [`one of ${option.argChoices.join(', ')}`];
  const { defaultValue } = option;
  const isShown = typeof defaultValue === 'string' || typeof defaultValue === 'number';
  const facts = [
    option.description,
    ...choices,
    ...(isShown && defaultValue !== '' ? [`default ${defaultValue}`] : []),
    ...(option.mandatory ? ['required'] : []),
  ];
  return [
    '.TP',
    `.B ${roff(option.flags)}`,
    roff(sentence(facts.filter((f) => f !== '').join('; '))),
  ];
}

function sentence(text: string): string {
  const whole = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?]$/.test(whole) || whole === '' ? whole : `${whole}.`;
}

/** Backslashes, hyphens that are no breaks, and lines that would be requests. */
function roff(text: string): string {
  const safe = text.replaceAll('\\', '\\e').replaceAll('-', '\\-').replaceAll('\n', ' ');
  return safe.replace(/^([.'])/, '\\&$1');
}
