import type { SpecDraft } from '../job-spec.ts';
import { kindOf } from '../model-kinds.ts';
import { show } from '../spec-checker.ts';
import { reads } from '../spec-parts.ts';
import type { Rule, RuleFacts } from './rule.ts';

/** Layers of a model that walks: as many as PinSAGE has in the GNNLab paper, table 2. */
const walkLayers = 3;
/** Linear layers of SIGN, as its authors and the MLSys 2025 paper have it. */
const signLayers = 3;

/** The network, and whether the chosen sampling feeds it. */
export const modelRule: Rule = (spec, facts) => {
  const { check } = facts;
  const { model, training } = spec;
  checkSampling(spec, facts);
  resolveLayers(spec, facts);
  if (model.hiddenDim % model.heads !== 0) {
    check.violate(
      'spec.model.hidden_dim',
      `${model.hiddenDim}: expected a multiple of ${model.heads}, model.heads, which share it`,
    );
  }
  resolveNormalization(model, facts);
  resolveVariant(model, facts);
  if (model.type === 'TORCHSCRIPT' && training.optimizer.weightDecayScope === 'FIRST_LAYER') {
    const path = 'spec.training.optimizer.weight_decay_scope';
    check.violate(path, 'FIRST_LAYER: which parameters that is only models of gnnd tell');
  }
  const isNarrow = training.precision !== 'FLOAT32' && training.precision !== 'AUTO';
  if (model.type === 'TORCHSCRIPT' && isNarrow) {
    const description = `${training.precision}: a TORCHSCRIPT computes what its file says`;
    check.violate('spec.training.precision', `${description}; expected FLOAT32`);
  }
};

/** Some models make of samples what only some algorithms draw. */
function checkSampling({ model, sampling }: SpecDraft, { check }: RuleFacts): void {
  const { samplings, normalizes } = kindOf(model.type);
  const { algorithm, replace } = sampling;
  if (samplings.length > 0 && !samplings.includes(algorithm)) {
    const description = `${algorithm}: ${model.type} needs ${samplings.join(' or ')}`;
    check.violate('spec.sampling.algorithm', description);
  } else if (normalizes && replace) {
    check.violate('spec.sampling.replace', `true: ${model.type} needs distinct neighbours`);
  }
}

function resolveLayers({ model, sampling }: SpecDraft, { check, given }: RuleFacts): void {
  const path = 'spec.model.layers';
  if (!reads({ model }, 'sampling')) {
    const ownLayers = model.type === 'SIGN' ? signLayers : 1;
    if (given.model?.layers === undefined || check.failed(path)) model.layers = ownLayers;
    if (model.type === 'SGC' && model.layers !== 1) {
      check.violate(path, `${model.layers}: SGC is one linear layer`);
    }
    return;
  }
  const walks = sampling.algorithm === 'RANDOM_WALK';
  const hops = walks ? walkLayers : sampling.fanouts.length;
  if (given.model?.layers === undefined || check.failed(path)) model.layers = hops;
  if (!walks && model.layers !== hops && !check.failed('spec.sampling.fanouts')) {
    check.violate(path, `${model.layers}: expected ${hops}, the number of sampling.fanouts`);
  }
}

function resolveNormalization(model: SpecDraft['model'], { check, given }: RuleFacts): void {
  const path = 'spec.model.normalization';
  if (!reads({ model }, 'model.normalization')) return;
  const { unitRows } = kindOf(model.type);
  if (given.model?.normalization === undefined || check.failed(path)) {
    model.normalization = unitRows ? 'L2' : 'NONE';
  } else if (unitRows && model.normalization !== 'L2') {
    check.violate(path, `${show(model.normalization)}: ${model.type} has L2 only`);
  }
}

const variantsOf: Readonly<Record<string, readonly SpecDraft['model']['variant'][]>> = {
  SIGN: ['FUSED', 'CONCAT'],
  HOGA: ['GATED', 'DAC24'],
};

/** The first is the default. Fields that a form lacks become neutral. */
function resolveVariant(model: SpecDraft['model'], { check, given }: RuleFacts): void {
  const path = 'spec.model.variant';
  const variants = variantsOf[model.type];
  const [first] = variants ?? [];
  if (variants === undefined || first === undefined) return;
  if (given.model?.variant === undefined || check.failed(path)) model.variant = first;
  if (!variants.includes(model.variant)) {
    check.violate(path, `${model.variant}: ${model.type} has ${variants.join(' and ')}`);
  }
  if (model.variant === 'CONCAT' && model.layers < 2 && !check.failed('spec.model.layers')) {
    check.violate('spec.model.layers', `${model.layers}: CONCAT has 2 or more`);
  }
  if (model.variant !== 'DAC24') return;
  for (const key of ['hopLayers', 'residual'] as const) {
    const value = given.model?.[key];
    if (value === undefined || value === 0 || value === false) continue;
    const field = key === 'hopLayers' ? 'hop_layers' : key;
    check.violate(`spec.model.${field}`, `${show(value)}: only for HOGA's variant GATED`);
  }
}
