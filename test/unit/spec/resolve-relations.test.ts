import { describe, expect, it } from 'vitest';
import { takenOf } from '../../../src/spec/job-relations.ts';
import type { JobSpecInput } from '../../../src/spec/job-spec.ts';
import { resolveJobSpec } from '../../../src/spec/resolve-job-spec.ts';
import type { ResolveContext } from '../../../src/spec/rules/rule.ts';
import { contextOf } from '../../support/spec-context.ts';

const labels = { task: 'CLASSIFICATION', num_classes: 2 };
const relation = (source: string, name: string, destination: string, reverse_of?: string) => ({
  ...{ source, name, destination },
  ...(reverse_of === undefined ? {} : { reverse_of }),
});

/** Authors without features, papers with labels, venues with features alone. */
const schema = {
  types: [
    { name: 'author' },
    { name: 'paper', features: {}, labels },
    { name: 'venue', features: {} },
  ],
  relations: [
    relation('author', 'writes', 'paper'),
    relation('paper', 'cites', 'paper'),
    relation('paper', 'in', 'venue'),
    relation('paper', 'rev_writes', 'author', 'author__writes__paper'),
    relation('venue', 'rev_in', 'paper', 'paper__in__venue'),
  ],
};
const flat = contextOf();
const context = { ...flat, schema };
const twoDevices = { ...contextOf({ deviceNames: ['cpu:0', 'cpu:1'] }), schema };

type Relations = NonNullable<JobSpecInput['relations']>;

const asked = (relations: Relations, changes: JobSpecInput = {}): JobSpecInput => ({
  dataset: 'library',
  model: { type: 'RSAGE' },
  relations,
  ...changes,
});

function resolved(relations: Relations, changes: JobSpecInput = {}) {
  const resolution = resolveJobSpec(asked(relations, changes), context);
  if (!('ok' in resolution)) throw new Error(JSON.stringify(resolution.violations));
  return resolution.ok;
}

/** What is wrong, `path: description` each. */
function wrong(spec: JobSpecInput, facts: ResolveContext = context) {
  const resolution = resolveJobSpec(spec, facts);
  if ('ok' in resolution) return [];
  return resolution.violations.map(({ path, description }) => `${path}: ${description}`);
}

describe('a job over several types', () => {
  it('has a model over relations unless one is asked for', () => {
    expect(resolved({}, { model: {} }).model.type).toBe('RSAGE');
    expect(wrong({ dataset: 'library', model: { type: 'GCN' } })).toEqual([
      expect.stringMatching(/^spec\.model\.type: GCN: .*RSAGE, RGCN, HGT/),
    ]);
  });

  it('learns the type that has labels, along all relations, exactly and in float32', () => {
    const spec = resolved({});
    expect(spec.relations).toEqual({ target: 'paper', reverse: true, only: [], fanouts: [] });
    expect(spec.evaluation.method).toBe('EXACT');
    expect(spec.training.precision).toBe('FLOAT32');
    expect([spec.cache.ratio, spec.cache.standbyRatio]).toEqual([0, 0]);
    expect(resolveJobSpec(spec, context)).toEqual({ ok: spec });
    const { types, relations } = takenOf(schema, spec.relations);
    expect(types.map(({ name }) => name)).toEqual(['paper', 'author', 'venue']);
    expect(relations).toEqual(schema.relations);
  });

  it('takes some of the relations, and the types at their ends', () => {
    const only = ['author__writes__paper', 'paper__rev_writes__author'];
    const { types, relations } = takenOf(schema, resolved({ only }).relations);
    expect(types.map(({ name }) => name)).toEqual(['paper', 'author']);
    expect(relations.map(({ name }) => name)).toEqual(['writes', 'rev_writes']);
  });

  it.each([
    [{ target: 'venue' }, 'target: venue has none; expected a type that has labels: paper'],
    [
      { target: 'papers' },
      'target: papers is no type of the dataset; did you mean paper?; expected a type that has ' +
        'labels: paper',
    ],
    [
      { only: ['paper__cite__paper'] },
      'only[0]: "paper__cite__paper" is no relation of the dataset; did you mean paper__cites__paper?',
    ],
    [
      { only: ['paper__cites__paper', 'paper__cites__paper'] },
      'only[1]: paper__cites__paper: is there already',
    ],
    [
      { reverse: false, only: ['paper__cites__paper', 'venue__rev_in__paper'] },
      'only[1]: venue__rev_in__paper: it turns paper__in__venue around, and relations.reverse is ' +
        'false',
    ],
    [
      { only: ['paper__in__venue'] },
      'only: no relation that takes part leads to paper: expected one of author__writes__paper, ' +
        'paper__cites__paper, venue__rev_in__paper',
    ],
    [
      { reverse: false },
      'reverse: author has no features, and no relation that takes part leads to it from rows, ' +
        'whose mean it would have; let paper__rev_writes__author take part, or name in ' +
        'relations.only those without author',
    ],
    [{ fanouts: ['paper__cites__paper'] }, 'fanouts[0]: "paper__cites__paper": expected SOURCE__'],
    [
      { fanouts: ['paper__cites__paper=5'] },
      'fanouts[0]: paper__cites__paper=5: expected 2 numbers, as many as sampling.fanouts',
    ],
    [
      { fanouts: ['paper__cites__paper=5/5000'] },
      'fanouts[0]: paper__cites__paper=5/5000: expected numbers from 0 to 4096, or -1 for all',
    ],
    [
      { fanouts: ['paper__cites__papers=5/5'] },
      'fanouts[0]: "paper__cites__papers" is no relation that takes part; did you mean ' +
        'paper__cites__paper?',
    ],
  ] satisfies [Relations, string][])('%j is refused', (relations, said) => {
    expect(wrong(asked(relations))).toEqual([expect.stringContaining(`spec.relations.${said}`)]);
  });

  it('says what to do about a type that nothing gives rows', () => {
    const island = {
      types: [...schema.types, { name: 'shelf' }, { name: 'room' }],
      relations: [...schema.relations, relation('shelf', 'in', 'room')],
    };
    const said = wrong(asked({}), { ...context, schema: island });
    expect(said).toEqual(
      ['shelf', 'room'].map(
        (type) =>
          `spec.relations.only: ${type} has no features, and no relation that takes part leads ` +
          'to it from rows, whose mean it would have; name in relations.only those without it, ' +
          'or import it with features',
      ),
    );
  });

  it('says which type is learnt where several have labels, or none', () => {
    const { types, relations } = schema;
    const two = {
      ...context,
      schema: { types: types.map((type) => ({ ...type, labels })), relations },
    };
    expect(wrong(asked({}), two)).toEqual([
      'spec.relations.target: required: expected a type that has labels: author, paper, venue',
    ]);
    expect(wrong(asked({ target: 'venue' }), two)).toEqual([]);
    const bare = types.map(({ name }) => ({ name, features: {} }));
    expect(wrong(asked({}), { ...context, schema: { types: bare, relations } })).toEqual([
      'spec.relations.target: no type of the dataset has labels; import it with those of one',
    ]);
  });

  it.each([
    [{ task: 'LINKS' }, 'spec.task: LINKS: not with several types yet; expected NODES'],
    [
      { sampling: { algorithm: 'LABOR' } },
      'spec.sampling.algorithm: LABOR: RSAGE needs KHOP_UNIFORM',
    ],
    [{ cache: { ratio: 0.5 } }, 'spec.cache.ratio: 0.5: not with several types yet; expected 0'],
    [
      { training: { precision: 'BFLOAT16' } },
      'spec.training.precision: BFLOAT16: not with several types yet; expected FLOAT32',
    ],
    [
      { evaluation: { method: 'SAMPLED' } },
      'spec.evaluation.method: SAMPLED: not with several types yet; expected EXACT',
    ],
    [
      { history: { staleSteps: 4, gradientShare: 0.5 } },
      'spec.history.stale_steps: 4: RSAGE reads',
    ],
    [
      { sampling: { locality: { maxScale: 2 } } },
      'spec.sampling.locality.max_scale: 2: RSAGE reads',
    ],
  ] satisfies [JobSpecInput, string][])('does not do %j', (changes, said) => {
    expect(wrong(asked({}, changes)).join('\n')).toContain(said);
  });
});

describe('a job that lends batches of several types', () => {
  const load = { nodesFile: '/seeds.npy', nodes: 4 };
  const lending = (relations: Relations, changes: JobSpecInput = {}) =>
    asked(relations, { kind: 'LOAD', load, resources: { devices: 2 }, ...changes });

  it('has seeds of any type, and needs no rows', () => {
    const resolution = resolveJobSpec(lending({ target: 'author', reverse: true }), twoDevices);
    expect(resolution).toMatchObject({
      ok: { relations: { target: 'author' }, features: { standardize: 'OFF' } },
    });
    const { types, relations } = schema;
    const bare = types.map(({ name }) => ({ name }));
    const without = { ...twoDevices, schema: { types: bare, relations } };
    expect(wrong(lending({ target: 'venue' }), without)).toEqual([]);
  });

  it('draws for new nodes alone, and along relations of its own numbers', () => {
    const sampling = { expansion: 'NEW' } as const;
    const fanouts = ['paper__cites__paper=0/5'];
    expect(wrong(lending({ target: 'paper', fanouts }, { sampling }), twoDevices)).toEqual([]);
  });

  it.each([
    [{ target: 'papers' }, {}, 'spec.relations.target: papers is no type of the dataset; did you'],
    [{ target: 'paper', only: ['paper__in__venue'] }, {}, 'spec.relations.only: no relation that'],
    [
      { target: 'paper', fanouts: ['paper__cites__paper=5'] },
      {},
      'spec.relations.fanouts[0]: paper__cites__paper=5: expected 2 numbers',
    ],
    [
      { target: 'paper' },
      { features: { standardize: 'ON' } },
      'spec.features.standardize: ON: readers of several types',
    ],
    [
      { target: 'paper' },
      { load: { linksFile: '/links.npy', links: 4 } },
      'spec.load.links_file: "/links.npy": not with several types yet',
    ],
    [
      { target: '' },
      { model: { type: 'GRAPHSAGE' } },
      'spec.model.type: GRAPHSAGE: the dataset has 3 types of nodes and 5 relations; expected one of',
    ],
  ] satisfies [Relations, JobSpecInput, string][])(
    '%j with %j is refused',
    (relations, changes, said) => {
      expect(wrong(lending(relations, changes), twoDevices).join('\n')).toContain(said);
    },
  );
});

describe('an HGT', () => {
  it('has attention, and its own activation and residual', () => {
    const hgt = { type: 'HGT', hiddenDim: 16, heads: 4, attentionDropout: 0.2 } as const;
    const { model } = resolved({}, { model: hgt });
    expect(model).toMatchObject({ ...hgt, activation: 'RELU', residual: false });
    const said = wrong(asked({}, { model: { ...hgt, activation: 'ELU', residual: true } }));
    expect(said).toEqual([
      expect.stringMatching(/^spec\.model\.activation: "?ELU"?: only for .* HGT have their own$/),
      expect.stringMatching(/^spec\.model\.residual: true: only for .* always add their own$/),
    ]);
  });
});

describe('models and datasets of one type', () => {
  it('are not for datasets of several, which name the models that are', () => {
    expect(wrong({ dataset: 'library', model: { type: 'GCN' } })).toEqual([
      'spec.model.type: GCN: the dataset has 3 types of nodes and 5 relations; expected one of ' +
        'RSAGE, RGCN, HGT',
    ]);
    expect(wrong({ dataset: 'library', kind: 'INFERENCE' }).join('\n')).toContain(
      'spec.dataset: "library": has 3 types of nodes and 5 relations, and the model is of',
    );
  });

  it('refuse models of several, naming what there is', () => {
    const [said] = wrong(asked({}), { ...flat, schema: null });
    expect(said).toMatch(
      /^spec\.model\.type: RSAGE: .* one relation; expected GRAPHSAGE, GCN, GAT/,
    );
    expect(wrong({ dataset: 'cora', relations: { target: 'paper' } }, flat)).toEqual([
      'spec.relations.target: "paper": only for type RSAGE, RGCN or HGT',
    ]);
  });

  it('read no relations', () => {
    const resolution = resolveJobSpec({ dataset: 'cora' }, { ...flat, schema: null });
    expect(resolution).toMatchObject({
      ok: { relations: { target: '', reverse: false, only: [], fanouts: [] } },
    });
  });
});
