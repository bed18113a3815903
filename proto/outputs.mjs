// What is made from the descriptors of the job spec, beside the TypeScript: the table of fields in
// docs/job-spec.md, and the C++ that reads options which the daemon hands on as they are.
import { getOption, ScalarType } from '@bufbuild/protobuf';

/** Between these lines of docs/job-spec.md stands the table. */
export const tableMarks = [
  '<!-- Made from the job spec in proto/gnnd/v1 by `npm run build:proto`. -->',
  '<!-- End of what is made. -->',
];

/** Markdown: one row a field, in the order of the proto. `extension` is gnnd.v1.field. */
export function fieldTable(spec, extension) {
  const table = { extension, names: new Set(enumNames(spec)) };
  return [
    '| field | type | default | range | |',
    '|---|---|---|---|---|',
    ...rowsOf(spec, table, { prefix: '', owner: undefined }),
  ].join('\n');
}

function rowsOf(desc, table, { prefix, owner }) {
  return desc.fields.flatMap((field) => {
    const option = getOption(field, table.extension);
    const path = `${prefix}${field.name}`;
    const onlyFor = option.onlyFor ?? owner;
    if (field.fieldKind === 'message') {
      return rowsOf(field.message, table, { prefix: `${path}.`, owner: onlyFor });
    }
    const marked = (text) => mark(text, table.names);
    const cells = [
      typeOf(field),
      marked(defaultOf(field, option)),
      marked(rangeOf(field, option, onlyFor)),
      linked(marked(meaningOf(option))),
    ];
    return [`| \`${path}\` | ${cells.join(' | ')} |`];
  });
}

function enumNames(desc) {
  return desc.fields.flatMap((field) => {
    if (field.fieldKind === 'message') return enumNames(field.message);
    return field.enum === undefined ? [] : choicesOf(field.enum).map(({ name }) => name);
  });
}

function choicesOf(schema) {
  const prefix = schema.sharedPrefix.toUpperCase();
  return schema.values
    .filter(({ number }) => number !== 0)
    .map(({ name, number }) => ({ name: name.slice(prefix.length), number }));
}

function mark(text, names) {
  return text.replace(/\b[A-Z][A-Z0-9_]+\b/g, (word) => (names.has(word) ? `\`${word}\`` : word));
}

function linked(text) {
  return text
    .replace(/docs\/job-spec\.md#([\w-]+)/g, '[below](#$1)')
    .replace(/docs\/([\w-]+\.md)/g, '[$1]($1)');
}

const typeNames = new Map([
  [ScalarType.INT32, 'int'],
  [ScalarType.INT64, 'int'],
  [ScalarType.UINT64, 'uint64'],
  [ScalarType.DOUBLE, 'float'],
  [ScalarType.BOOL, 'bool'],
  [ScalarType.STRING, 'text'],
]);

function typeOf(field) {
  const type = field.enum === undefined ? typeNames.get(field.scalar) : 'enum';
  return field.fieldKind === 'list' ? `list of ${type}` : type;
}

function defaultOf(field, option) {
  if (option.required) return 'required';
  const { default: text, defaultRule: rule, unit } = option;
  const isNumber = field.scalar === ScalarType.INT32 || field.scalar === ScalarType.INT64;
  const shown = text === undefined || text === '' ? [] : [text];
  const values =
    isNumber && !text?.startsWith('[') ? shown.map((each) => amount(each, unit)) : shown;
  return [...values, ...(rule === '' ? [] : [rule])].join(', ');
}

const millisecondsUnit = 1;
const bytesUnit = 2;

/** `8 GiB`, `24 h`: the largest unit that leaves no fraction; thousands are set apart. */
function amount(value, unit) {
  const number = Number(value);
  const largest = (units) => units.find(([, size]) => number >= size && number % size === 0);
  const kinds = new Map([
    [
      millisecondsUnit,
      [
        ['h', 3_600_000],
        ['min', 60_000],
        ['s', 1000],
      ],
    ],
    [
      bytesUnit,
      [
        ['TiB', 2 ** 40],
        ['GiB', 2 ** 30],
        ['MiB', 2 ** 20],
      ],
    ],
  ]);
  if (number === 2 ** 31 - 1) return '2^31 - 1';
  const found = number === 1000 ? undefined : largest(kinds.get(unit) ?? []);
  if (found !== undefined) return `${number / found[1]} ${found[0]}`;
  return Number.isInteger(number) ? number.toLocaleString('en-US') : String(value);
}

function rangeOf(field, option, onlyFor) {
  const { also, rangeRule, maxItems, maxLength } = option;
  const isList = field.fieldKind === 'list';
  const bounds = boundsOf(field, option);
  const specials = also.map(({ value }) => ` or ${value}`).join('');
  const parts = [
    bounds === '' ? '' : `${isList ? 'each ' : ''}${bounds}${specials}`,
    maxItems > 0 ? `at most ${amount(maxItems)}` : '',
    maxLength > 0 ? `at most ${amount(maxLength)} characters` : '',
    rangeRule,
    onlyFor === undefined ? '' : elsewhere(field, option, onlyFor),
  ];
  return parts.filter((part) => part !== '').join('; ');
}

function boundsOf(field, { gt, gte, lt, lte, unit }) {
  if (field.enum !== undefined)
    return choicesOf(field.enum)
      .map(({ name }) => name)
      .join(', ');
  if (field.scalar === ScalarType.UINT64) return '0 to 2^64 - 1';
  if (gt === undefined && gte === undefined) return '';
  if (lt === undefined && lte === undefined)
    return gte === undefined ? `above ${gt}` : `${gte} or more`;
  if (field.scalar !== ScalarType.DOUBLE) return `${amount(gte, unit)} to ${amount(lte, unit)}`;
  const low = gte === undefined ? `(${gt}` : `[${gte}`;
  return `${low}, ${lte === undefined ? `${lt})` : `${lte}]`}`;
}

/** What the field is in jobs that do not read it. */
function elsewhere(field, { otherwise }, { values, except }) {
  const neutral = otherwise ?? neutralOf(field);
  return except.length > 0
    ? `${neutral} for ${except.join(', ')}`
    : `${neutral} unless ${values.join(', ')}`;
}

function neutralOf(field) {
  if (field.scalar === ScalarType.STRING) return 'empty';
  return field.scalar === ScalarType.BOOL ? 'false' : '0';
}

const bitsTexts = ['', 'bits; ', 'bits, of the best parameters; '];

function meaningOf({ bits, about }) {
  const text = about.replace(/\.$/, '');
  // Not of what begins with a letter's name or an abbreviation.
  const isWord = /^[A-Z][a-z]/.test(text);
  const start = isWord ? text.charAt(0).toLowerCase() : text.charAt(0);
  return `${bitsTexts[bits]}${start}${text.slice(1)}`;
}

/** Messages whose fields native code has under the same names, and the structs that have them. */
const nativeMessages = new Map([
  ['WalkSpec', 'WalkOptions'],
  ['LaborSpec', 'LaborOptions'],
  ['LocalitySpec', 'LocalityOptions'],
  ['SamplerPluginSpec', 'PluginSource'],
  ['SamplingSpec', 'SamplingOptions'],
  ['ModelScriptSpec', 'ScriptSource'],
  ['ModelSpec', 'ModelOptions'],
  ['LrScheduleSpec', 'ScheduleOptions'],
  ['OptimizerSpec', 'OptimizerOptions'],
]);
/** Those that the daemon completes, in native/node/tables.h and the bindings. */
const completed = new Set(['SamplingSpec', 'ModelSpec', 'LrScheduleSpec', 'OptimizerSpec']);
/** The few other names; null: the daemon makes another field of it. */
const nativeNames = new Map([
  ['ModelSpec.layers', 'num_layers'],
  ['SamplingSpec.plugin', 'source'],
  ['WalkSpec.neighbors', null],
]);
/** Fields of other messages whose enums native code has, too. */
const nativeChoices = [
  ['TrainingSpec', 'precision'],
  ['LinksSpec', 'exclude'],
  ['NegativesSpec', 'method'],
  ['NegativesSpec', 'known'],
  ['LinksSpec', 'head'],
  ['LinksSpec', 'loss'],
  ['LinkEvaluationSpec', 'negatives'],
];
const nativeEnums = new Map([
  ['SamplingAlgorithm', 'Algorithm'],
  ['LrScheduleType', 'ScheduleType'],
]);

/** C++: a table for each of these messages and their enums. `messageOf` finds one by its name. */
export function nativeTables(messageOf) {
  const messages = [...nativeMessages.keys()].map((name) => messageOf(`gnnd.v1.${name}`));
  const others = nativeChoices.map(([name, field]) => messageOf(`gnnd.v1.${name}`).field[field]);
  const fields = [...messages.flatMap((message) => message.fields), ...others];
  const enums = new Set(fields.flatMap((field) => field.enum ?? []));
  return `${[
    '// Made from the job spec in proto/gnnd/v1 by `npm run build:proto`; not to be edited.',
    '// clang-format off',
    '#pragma once',
    '',
    '#include "node/job_structs.h"',
    '#include "node/table.h"',
    '',
    '// Parts of a job spec that the daemon hands on as they are. Every field must have a member of',
    '// its name: one that nobody honours does not compile.',
    '',
    'namespace gnnd::node {',
    '',
    [...enums].map(namesOf).join('\n\n'),
    '',
    messages.map(tableOf).join('\n\n'),
    '',
    '}  // namespace gnnd::node',
  ].join('\n')}\n`;
}

function namesOf(schema) {
  const type = nativeEnums.get(schema.name) ?? schema.name;
  const names = choicesOf(schema).map(({ name, number }) => `{"${name}", ${type}{${number}}}`);
  const left = `inline constexpr auto kNames<${type}> =`;
  const right = `NamesOf<${type}>("${type}", {`;
  const fits = left.length + 1 + right.length <= 100;
  return [
    'template <>',
    ...(fits ? [`${left} ${right}`] : [left, `    ${right}`]),
    `    ${names.join(',\n    ')}});`,
  ].join('\n');
}

function tableOf(message) {
  const struct = nativeMessages.get(message.name);
  const fields = message.fields.flatMap((field) => {
    const member = nativeNames.get(`${message.name}.${field.name}`);
    if (member === null) return [];
    return [`Field{"${field.localName}", &${struct}::${member ?? field.name}}`];
  });
  const head = completed.has(message.name)
    ? [`inline constexpr auto k${message.name} = std::tuple{`]
    : ['template <>', `inline constexpr auto kTable<${struct}> = StructOf("${struct}",`];
  const end = completed.has(message.name) ? '};' : ');';
  return [...head, `    ${fields.join(',\n    ')}${end}`].join('\n');
}
