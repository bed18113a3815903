import type { JobSpec, JobSpecInput, ModelType } from './job-spec.ts';
import { integerLimits, specDefaults } from './limits.ts';
import { type PluginLookup, resolvePluginFile, unusedPluginFile } from './resolve-plugin.ts';
import { type SpecChecker, share, show, unusedField } from './spec-checker.ts';

type Model = JobSpec['model'];
type ModelInput = NonNullable<JobSpecInput['model']>;
type Sampling = JobSpec['sampling'];

/** The network of a spec, and whether the chosen sampling feeds it. */
export function resolveModel(
  check: SpecChecker,
  model: JobSpecInput['model'],
  { sampling, pluginFile }: { readonly sampling: Sampling; readonly pluginFile: PluginLookup },
): Model {
  const defaults = specDefaults.model;
  const type = check.choice(
    'spec.model.type',
    model?.type,
    ['GRAPHSAGE', 'GCN', 'GAT', 'GATV2', 'PINSAGE', 'TORCHSCRIPT'],
    defaults.type,
  );
  if (type === 'TORCHSCRIPT') return resolveScript(check, model, { sampling, pluginFile });
  if (type === 'GCN') checkGcnSampling(check, sampling);
  if (type === 'PINSAGE') checkPinSageSampling(check, sampling);
  const hiddenDim = check.integer(
    'spec.model.hidden_dim',
    model?.hiddenDim,
    integerLimits.hiddenDim,
    defaults.hiddenDim,
  );
  const real = (field: string, value: number | undefined, fallback: number) =>
    check.real(`spec.model.${field}`, value, share, fallback);
  return {
    type,
    layers: resolveLayers(check, model?.layers, sampling),
    hiddenDim,
    dropout: real('dropout', model?.dropout, defaults.dropout),
    inputDropout: real('input_dropout', model?.inputDropout, defaults.inputDropout),
    ...resolveAttention(check, model, type, hiddenDim),
    activation: check.choice(
      'spec.model.activation',
      model?.activation,
      ['RELU', 'ELU', 'LEAKY_RELU'],
      defaults.activation,
    ),
    normalization: resolveNormalization(check, model?.normalization, type),
    residual: check.flag('spec.model.residual', model?.residual, defaults.residual),
    script: unusedPluginFile(check, 'spec.model.script', model?.script, 'type TORCHSCRIPT'),
  };
}

/** What a module does between and inside its layers is its own. */
function resolveScript(
  check: SpecChecker,
  model: JobSpecInput['model'],
  { sampling, pluginFile }: { readonly sampling: Sampling; readonly pluginFile: PluginLookup },
): Model {
  const owner = 'models of gnnd: a TORCHSCRIPT module does without';
  const foreign = <T extends number>(field: string, value: number | undefined, neutral: T) =>
    unusedField(check, `spec.model.${field}`, value, neutral, owner);
  const { activation, normalization, residual } = specDefaults.model;
  const unset = <T>(field: string, value: T | undefined, neutral: T): T => {
    if (value !== undefined && value !== neutral) {
      check.violate(`spec.model.${field}`, `${show(value)}: only for ${owner}`);
    }
    return neutral;
  };
  return {
    type: 'TORCHSCRIPT',
    layers: resolveLayers(check, model?.layers, sampling),
    hiddenDim: foreign('hidden_dim', model?.hiddenDim, 0),
    dropout: foreign('dropout', model?.dropout, 0),
    inputDropout: foreign('input_dropout', model?.inputDropout, 0),
    heads: foreign('heads', model?.heads, 1),
    attentionDropout: foreign('attention_dropout', model?.attentionDropout, 0),
    activation: unset('activation', model?.activation, activation),
    normalization: unset('normalization', model?.normalization, normalization),
    residual: unset('residual', model?.residual, residual),
    script: resolvePluginFile(check, 'spec.model.script', model?.script, {
      lookup: pluginFile,
      kind: 'MODEL',
      owner: 'type TORCHSCRIPT',
    }),
  };
}

/** Coefficients of a graph convolution are known for uniform draws of distinct neighbours only. */
function checkGcnSampling(check: SpecChecker, { algorithm, replace }: Sampling): void {
  if (algorithm !== 'KHOP_UNIFORM') {
    check.violate('spec.sampling.algorithm', `${algorithm}: GCN needs KHOP_UNIFORM`);
  } else if (replace) {
    check.violate('spec.sampling.replace', 'true: GCN needs distinct neighbours');
  }
}

/** PinSAGE weighs neighbours by how often walks visit them. */
function checkPinSageSampling(check: SpecChecker, { algorithm }: Sampling): void {
  if (algorithm === 'RANDOM_WALK') return;
  check.violate('spec.sampling.algorithm', `${algorithm}: PINSAGE needs RANDOM_WALK`);
}

function resolveLayers(
  check: SpecChecker,
  given: number | undefined,
  { algorithm, fanouts }: Sampling,
): number {
  const path = 'spec.model.layers';
  const walks = algorithm === 'RANDOM_WALK';
  const hops = walks ? specDefaults.walk.layers : fanouts.length;
  const layers = check.integer(path, given, integerLimits.layers, hops);
  if (!walks && layers !== hops && !check.failed('spec.sampling.fanouts')) {
    check.violate(path, `${layers}: expected ${hops}, the number of sampling.fanouts`);
  }
  return layers;
}

function resolveAttention(
  check: SpecChecker,
  model: ModelInput | undefined,
  type: ModelType,
  hiddenDim: number,
): Pick<Model, 'heads' | 'attentionDropout'> {
  const path = 'spec.model.heads';
  const dropoutPath = 'spec.model.attention_dropout';
  if (type !== 'GAT' && type !== 'GATV2') {
    const owner = 'type GAT or GATV2';
    return {
      heads: unusedField(check, path, model?.heads, 1, owner),
      attentionDropout: unusedField(check, dropoutPath, model?.attentionDropout, 0, owner),
    };
  }
  const { heads: fallback, attentionDropout } = specDefaults.model;
  const heads = check.integer(path, model?.heads, integerLimits.heads, fallback);
  if (hiddenDim % heads !== 0) {
    check.violate(
      'spec.model.hidden_dim',
      `${hiddenDim}: expected a multiple of ${heads}, model.heads, which share it`,
    );
  }
  return {
    heads,
    attentionDropout: check.real(dropoutPath, model?.attentionDropout, share, attentionDropout),
  };
}

function resolveNormalization(
  check: SpecChecker,
  given: ModelInput['normalization'],
  type: ModelType,
): Model['normalization'] {
  const path = 'spec.model.normalization';
  const fallback = type === 'PINSAGE' ? 'L2' : specDefaults.model.normalization;
  const normalization = check.choice(path, given, ['NONE', 'L2', 'LAYER'], fallback);
  if (type === 'PINSAGE' && normalization !== 'L2') {
    check.violate(path, `${show(normalization)}: PINSAGE has L2 only`);
  }
  return normalization;
}
