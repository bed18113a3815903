import { type DescMessage, fromJson, type JsonObject, type JsonValue } from '@bufbuild/protobuf';
import { isMap, isScalar, LineCounter, parseDocument, visit, type YAMLMap } from 'yaml';
import { type JobSpec, JobSpecSchema } from '../../api/gen/gnnd/v1/job_spec_pb.ts';
import { nearestOf } from '../../spec/nearest.ts';
import { isNull, join, type Place, type SpecProblem, SpecReader } from './spec-reader.ts';

export type { Place, SpecProblem } from './spec-reader.ts';

/**
 * Job specs as people write them: YAML (or JSON) of the proto's JSON form, with keys in snake_case
 * or camelCase, short enum names, durations and sizes with units. Everything wrong with a file is
 * found at once. The server checks what fields mean; here is checked what they are.
 */
export interface SpecFile {
  readonly spec: JobSpec;
  /** `metadata.name`; empty when the file has none. */
  readonly jobId: string;
  /** Where the fields stand, by path, e.g. `spec.training.epochs`: for what the server finds. */
  readonly places: ReadonlyMap<string, Place>;
}

export type SpecReading = { readonly ok: SpecFile } | { readonly problems: readonly SpecProblem[] };

export interface SpecSource {
  /** As shown in problems. */
  readonly file: string;
  readonly text: string;
}

/** More than any spec needs; the server takes 64 KiB. */
const textLengthMax = 1 << 20;
const apiVersion = 'gnnd/v1';

/**
 * Reads a file, or none, and applies `path=value` settings over it; a path may start with `spec.`.
 */
export function readSpec(source: SpecSource | null, settings: readonly string[] = []): SpecReading {
  const problems: SpecProblem[] = [];
  const places = new Map<string, Place>();
  let json: JsonObject = {};
  let jobId = '';
  if (source !== null) {
    const content = readFile(source);
    problems.push(...content.problems);
    for (const [path, place] of content.places) places.set(path, place);
    json = content.json;
    jobId = content.jobId;
  }
  for (const setting of settings) problems.push(...applySetting(json, setting, places));
  if (problems.length > 0) return { problems };
  return { ok: { spec: fromJson(JobSpecSchema, json), jobId, places } };
}

interface Content {
  readonly problems: readonly SpecProblem[];
  readonly places: ReadonlyMap<string, Place>;
  readonly json: JsonObject;
  readonly jobId: string;
}

function readFile({ file, text }: SpecSource): Content {
  const lines = new LineCounter();
  const reader = new SpecReader(file, lines, JobSpecSchema);
  const failed = () => ({ problems: reader.problems, places: reader.places, json: {}, jobId: '' });
  if (text.length > textLengthMax) {
    reader.problem(null, '', `${text.length} characters: expected at most ${textLengthMax}`);
    return failed();
  }
  const document = parse(text, lines);
  for (const { message, pos } of document.errors) {
    reader.problem({ range: [pos[0], pos[0], pos[0]] }, '', message);
  }
  if (reader.problems.length > 0) return failed();
  visit(document, {
    Alias: (_, alias) => {
      reader.problem(alias, '', `*${alias.source}: aliases are not allowed, write the value`);
    },
    Value: (_, node) => {
      if (node.anchor === undefined) return;
      reader.problem(node, '', `&${node.anchor}: anchors are not allowed, write the value`);
    },
  });
  const top: unknown = document.contents;
  if (isNull(top)) {
    reader.problem(top, '', 'empty: expected a job spec');
    return failed();
  }
  if (!isMap(top)) {
    reader.problem(top, '', 'expected a map: a job spec, or {api_version, kind, metadata, spec}');
    return failed();
  }
  // A spec has a kind, too: an envelope is what has its spec apart.
  const isEnvelope = envelopeKeys.some((key) => top.has(key));
  const { jobId, specNode, kind } = isEnvelope
    ? readEnvelope(reader, top)
    : ({ jobId: '', specNode: top, kind: 'Job' } as const);
  const json = reader.message(JobSpecSchema, specNode, 'spec');
  if (kind === 'Inference') json['kind'] ??= 'JOB_KIND_INFERENCE';
  return { problems: reader.problems, places: reader.places, json, jobId };
}

function parse(text: string, lines: LineCounter) {
  // Bigints keep 64-bit random seeds exact; keys that stand twice are reported with their path.
  const options = { lineCounter: lines, intAsBigInt: true, uniqueKeys: false, prettyErrors: false };
  return parseDocument(text, options);
}

const envelopeKeys = ['api_version', 'apiVersion', 'metadata', 'spec'] as const;

interface Envelope {
  readonly jobId: string;
  readonly specNode: unknown;
  readonly kind: EnvelopeKind;
}

/** `{api_version, kind: Job, metadata: {name}, spec}`; `kind: Inference` is one of its kinds. */
function readEnvelope(reader: SpecReader, top: YAMLMap): Envelope {
  let jobId = '';
  let specNode: unknown = null;
  let kind: EnvelopeKind = 'Job';
  for (const [key, { key: keyNode, value }] of reader.entries(top, '')) {
    switch (key) {
      case 'api_version':
      case 'apiVersion':
        expectText(reader, value, key, apiVersion);
        break;
      case 'kind':
        kind = kindOf(reader, value, key);
        break;
      case 'metadata':
        jobId = readMetadata(reader, value);
        break;
      case 'spec':
        specNode = value;
        break;
      default: {
        const meant = nearestOf(key, ['api_version', 'kind', 'metadata', 'spec']);
        const inside = JobSpecSchema.fields.some((field) => field.name === key);
        const hint = inside ? `spec.${key}` : meant;
        const known = 'known here: api_version, kind, metadata, spec';
        reader.problem(
          keyNode,
          key,
          `unknown key; ${hint === null ? known : `did you mean ${hint}?`}`,
        );
      }
    }
  }
  return { jobId, specNode, kind };
}

/** What an envelope's kind says of its spec: that of a job says nothing. */
const envelopeKinds = ['Job', 'Inference'] as const;
type EnvelopeKind = (typeof envelopeKinds)[number];

function kindOf(reader: SpecReader, node: unknown, path: string): EnvelopeKind {
  const text = isScalar(node) ? String(node.value) : '';
  const kind = envelopeKinds.find((each) => each === text);
  if (kind === undefined) {
    const expected = envelopeKinds.join(' or ');
    reader.problem(node, path, `${JSON.stringify(text)}: expected ${expected}`);
  }
  return kind ?? 'Job';
}

function expectText(reader: SpecReader, node: unknown, path: string, expected: string): void {
  const text = isScalar(node) ? String(node.value) : '';
  if (text !== expected) {
    reader.problem(node, path, `${JSON.stringify(text)}: expected ${expected}`);
  }
}

function readMetadata(reader: SpecReader, node: unknown): string {
  if (isNull(node)) return '';
  if (!isMap(node)) {
    reader.problem(node, 'metadata', 'expected a map with the key name');
    return '';
  }
  let jobId = '';
  for (const [key, { key: keyNode, value }] of reader.entries(node, 'metadata')) {
    const path = join('metadata', key);
    if (key !== 'name') {
      const hint = nearestOf(key, ['name']) === null ? 'known here: name' : 'did you mean name?';
      reader.problem(keyNode, path, `unknown key; ${hint}`);
    } else if (isScalar(value) && typeof value.value === 'string') jobId = value.value;
    else reader.problem(value, path, 'expected the id of the job, as text');
  }
  return jobId;
}

/** Writes `path=value` into `json`; answers what is wrong with it. */
function applySetting(
  json: JsonObject,
  setting: string,
  places: Map<string, Place>,
): readonly SpecProblem[] {
  const [rawPath = '', ...rest] = setting.split('=');
  const lines = new LineCounter();
  const reader = new SpecReader(`--set ${setting}`, lines, JobSpecSchema);
  if (rest.length === 0 || rawPath === '') {
    reader.problem(null, '', 'expected path=value, such as training.epochs=10');
    return unplaced(reader.problems);
  }
  const document = parse(rest.join('='), lines);
  for (const { message } of document.errors) reader.problem(null, rawPath, message);
  if (reader.problems.length > 0) return unplaced(reader.problems);
  const keys = rawPath.split('.');
  if (keys[0] === 'spec') keys.shift();
  const top: Target = { json, desc: JobSpecSchema, path: 'spec' };
  const path = setField(reader, top, keys, document.contents);
  if (path !== null) {
    for (const before of places.keys()) if (before.startsWith(`${path}.`)) places.delete(before);
    const place = { file: `--set ${setting}`, line: 0, column: 0 };
    for (const written of [path, ...reader.places.keys()]) places.set(written, place);
  }
  return unplaced(reader.problems);
}

interface Target {
  readonly json: JsonObject;
  readonly desc: DescMessage;
  readonly path: string;
}

/** Answers the path of the field that was set, as the proto spells it; null where there is none. */
function setField(
  reader: SpecReader,
  { json, desc, path }: Target,
  keys: readonly string[],
  node: unknown,
): string | null {
  const [key = '', ...below] = keys;
  const field = reader.resolve(desc, key, join(path, key));
  if (field === undefined) return null;
  const fieldPath = join(path, field.name);
  if (below.length === 0) {
    const value = reader.value(field, node, fieldPath);
    if (value === undefined) delete json[field.jsonName];
    else json[field.jsonName] = value;
    return fieldPath;
  }
  if (field.fieldKind === 'message') {
    const inner = objectOf(json[field.jsonName]);
    json[field.jsonName] = inner;
    return setField(reader, { json: inner, desc: field.message, path: fieldPath }, below, node);
  }
  reader.problem(node, fieldPath, 'has no fields below it');
  return null;
}

function objectOf(value: JsonValue | undefined): JsonObject {
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
  return isObject ? value : {};
}

/** A setting is one line of a command: its place is the setting itself. */
function unplaced(problems: readonly SpecProblem[]): readonly SpecProblem[] {
  return problems.map((problem) => ({ ...problem, line: 0, column: 0 }));
}

/** Place of a field or what encloses it: the list of `fanouts[1]`, the map that lacks a field. */
export function placeOf(places: ReadonlyMap<string, Place>, path: string): Place | undefined {
  for (let at = path; at !== ''; at = at.slice(0, Math.max(0, at.search(/(\.[^.[]*|\[\d+\])$/)))) {
    const place = places.get(at);
    if (place !== undefined) return place;
  }
  return undefined;
}

/** `job.yaml:12:3`, or the setting itself. */
export function showPlace({ file, line, column }: Place): string {
  return line === 0 ? file : `${file}:${line}:${column}`;
}
