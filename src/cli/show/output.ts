import {
  createRegistry,
  type DescField,
  type DescMessage,
  type JsonObject,
  type JsonValue,
  type MessageShape,
  toJson,
} from '@bufbuild/protobuf';
import Table from 'cli-table3';
import { stringify } from 'yaml';
import {
  DatasetSchema,
  DatasetValidationSchema,
} from '../../api/gen/gnnd/v1/dataset_service_pb.ts';
import { shortName } from '../../spec/enum-names.ts';
import type { Session } from '../session/session.ts';
import { padEnd, printable, wrap } from '../session/terminal.ts';

/** The formats of `-o`. The JSON ones are proto JSON, the contract for scripts. */

/** What an operation's `response` may hold. */
const registry = createRegistry(DatasetSchema, DatasetValidationSchema);

/** Fields at their defaults are there, too, so that scripts find the same fields every time. */
export function jsonOf<D extends DescMessage>(schema: D, message: MessageShape<D>): JsonValue {
  return toJson(schema, message, { registry, alwaysEmitImplicit: true });
}

/** A column of a list: for people, and for programs that cut at tabs. */
export interface Column<T> {
  readonly title: string;
  /** The title for programs, where exact text is something else: `BYTES`, not `SIZE`. */
  readonly plainTitle?: string;
  readonly align?: 'right';
  /** Only with `-o wide`. */
  readonly isWide?: boolean;
  /** Short, relative, perhaps coloured. */
  readonly shown: (row: T) => string;
  /** Absolute and exact; as shown when absent. */
  readonly plain?: (row: T) => string;
}

export interface ListView<D extends DescMessage, R extends DescMessage> {
  /** Schema of the whole answer, for json and yaml. */
  readonly schema: D;
  readonly message: MessageShape<D>;
  readonly rowSchema: R;
  readonly rows: readonly MessageShape<R>[];
  readonly columns: readonly Column<MessageShape<R>>[];
  readonly nameOf: (row: MessageShape<R>) => string;
}

/** Prints a list in the session's format. */
export function printList<D extends DescMessage, R extends DescMessage>(
  session: Session,
  view: ListView<D, R>,
): void {
  const { rows, columns } = view;
  switch (session.format) {
    case 'json':
    case 'yaml':
      session.print(document(session.format, jsonOf(view.schema, view.message)));
      return;
    case 'jsonl':
      for (const row of rows) session.print(JSON.stringify(jsonOf(view.rowSchema, row)));
      return;
    case 'name':
      for (const row of rows) session.print(view.nameOf(row));
      return;
    case 'plain':
      if (session.hasHeaders) {
        session.print(columns.map(({ title, plainTitle }) => plainTitle ?? title).join('\t'));
      }
      for (const row of rows) session.print(columns.map((column) => exact(column, row)).join('\t'));
      return;
    default: {
      const seen = columns.filter(({ isWide }) => session.format === 'wide' || isWide !== true);
      if (rows.length > 0) session.print(tableOf(session, seen, rows));
    }
  }
}

/** Tabs and line ends separate, so they cannot be in a cell. */
function exact<T>(column: Column<T>, row: T): string {
  return (column.plain ?? column.shown)(row).replaceAll(/[\t\n\r]/g, ' ');
}

const noBorders = Object.fromEntries(
  ['top', 'bottom', 'left', 'right', 'mid'].flatMap((side) =>
    ['', '-mid', '-left', '-right'].map((part) => [`${side}${part}`, '']),
  ),
);

/** Columns with two spaces between them and no lines. */
export function tableOf<T>(
  session: Session,
  columns: readonly Column<T>[],
  rows: readonly T[],
): string {
  const table = new Table({
    chars: { ...noBorders, 'mid-mid': '', middle: '  ' },
    style: { 'padding-left': 0, 'padding-right': 0, head: [], border: [] },
    colAligns: columns.map(({ align }) => align ?? 'left'),
    head: session.hasHeaders ? columns.map(({ title }) => session.style.dim(title)) : [],
  });
  for (const row of rows) table.push(columns.map((column) => column.shown(row)));
  const lines = table.toString().split('\n');
  return lines.map((line) => line.trimEnd()).join('\n');
}

/**
 * A property of one thing: title, text for people, exact text, and the key for programs, which ends
 * in the unit where there is one. Unless given, the key is the title in snake_case.
 */
export type Fact = readonly [title: string, shown: string, plain?: string, key?: string];

export interface OneView<D extends DescMessage> {
  readonly schema: D;
  readonly message: MessageShape<D>;
  readonly name: string;
  readonly facts: () => readonly Fact[];
  /** Below the facts, for people only. */
  readonly sections?: () => readonly string[];
}

/** Prints one thing in the session's format. */
export function printOne<D extends DescMessage>(session: Session, view: OneView<D>): void {
  switch (session.format) {
    case 'json':
    case 'yaml':
      session.print(document(session.format, jsonOf(view.schema, view.message)));
      return;
    case 'jsonl':
      session.print(JSON.stringify(jsonOf(view.schema, view.message)));
      return;
    case 'name':
      session.print(view.name);
      return;
    case 'plain':
      for (const [title, shown, plain, key] of view.facts()) {
        const name = key ?? title.toLowerCase().replaceAll(' ', '_');
        session.print(`${name}\t${(plain ?? shown).replaceAll(/[\t\n\r]/g, ' ')}`);
      }
      return;
    default:
      session.print([factLines(session, view.facts()), ...(view.sections?.() ?? [])].join('\n\n'));
  }
}

const narrowestColumn = 20;

/** `title  text` a line; on a terminal long texts go on in their column. */
export function factLines(session: Session, facts: readonly Fact[]): string {
  const shown = facts.filter(([, text]) => text !== '');
  const width = Math.max(0, ...shown.map(([title]) => title.length)) + 2;
  const { stdout } = session.io;
  // A pipe has no width; a window too narrow for a column of words breaks them as it likes.
  const room = stdout.isTty ? stdout.columns() - width : 0;
  return shown
    .map(([title, text]) => {
      const lines = room < narrowestColumn ? [text] : wrap(text, room);
      return session.style.dim(padEnd(title, width)) + lines.join(`\n${' '.repeat(width)}`);
    })
    .join('\n');
}

function document(format: 'json' | 'yaml', json: JsonValue): string {
  return format === 'json' ? JSON.stringify(json, null, 2) : stringify(json);
}

/** A message as a spec file has it: snake_case keys, short enum names, unset fields left out. */
export function specYaml<D extends DescMessage>(schema: D, message: MessageShape<D>): string {
  const json = toJson(schema, message, { useProtoFieldName: true, enumAsInteger: true });
  return stringify(withEnumNames(schema, json), { flowCollectionPadding: false });
}

function withEnumNames(schema: DescMessage, json: JsonValue): JsonValue {
  if (typeof json !== 'object' || json === null || Array.isArray(json)) return json;
  const fields = new Map<string, DescField>(schema.fields.map((field) => [field.name, field]));
  const named: JsonObject = {};
  for (const [key, value] of Object.entries(json)) {
    const field = fields.get(key);
    if (field?.fieldKind === 'message') named[key] = withEnumNames(field.message, value);
    else if (field?.fieldKind === 'enum') named[key] = shortName(field.enum, Number(value));
    else if (field?.fieldKind === 'list' && field.listKind === 'enum' && Array.isArray(value))
      named[key] = value.map((each) => shortName(field.enum, Number(each)));
    else named[key] = value;
  }
  return named;
}

export function warningFacts(session: Session, warnings: readonly string[]): readonly Fact[] {
  return warnings.map((warning): Fact => {
    const text = printable(warning);
    return ['Warning', session.style.yellow(text), text];
  });
}
