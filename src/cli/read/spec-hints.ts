import { typeCalled } from '../../spec/model-kinds.ts';

/**
 * Words of other libraries (PyTorch Geometric, DGL, PyTorch, scikit-learn) that people write into a
 * job spec: what they are called here, or that they are not here and what is nearest. Spelling is
 * not looked at: `numNeighbors`, `num_neighbors` and `NumNeighbors` are one word.
 */

/** A key's meaning: the field that it is here, or why there is none. */
export type Meaning = { readonly field: string } | { readonly missing: string };

const field = (path: string): Meaning => ({ field: path });
const missing = (text: string): Meaning => ({ missing: text });

const learnt =
  'what is learnt of a node belongs to the dataset (gnnctl dataset import SOURCE ' +
  '--task regression, or multi_label), and the loss follows from it; spec.task LINKS learns ' +
  'links, with a loss of its own (docs/links.md); whole graphs are not there';
const ownModel = 'a model of yours can be a TorchScript file (type TORCHSCRIPT, docs/plugins.md)';
const fromDataset = 'nothing to set: it follows from the dataset';
const noDeviceChoice = 'devices are asked for with resources.devices or device_names';

const keys: readonly (readonly [words: string, meaning: Meaning])[] = [
  ['lr initiallr', field('training.optimizer.learning_rate')],
  ['wd l2 weightdecayrate', field('training.optimizer.weight_decay')],
  ['betas', missing('two fields, spec.training.optimizer.beta1 and beta2')],
  ['gradclip clipgrad maxgradnorm', field('training.optimizer.clip_norm')],
  ['scheduler lrscheduler', field('training.lr_schedule')],
  ['numepochs nepochs maxepochs', field('training.epochs')],
  ['batch bs', field('training.batch_size')],
  ['seed manualseed randomstate', field('training.random_seed')],
  ['patience earlystoppingpatience', field('training.early_stop.patience_epochs')],
  ['earlystopping', field('training.early_stop')],
  ['numthreads ompnumthreads nthreads', field('training.threads_per_trainer')],
  ['numneighbors numneighbours fanout numsamples neighborsizes', field('sampling.fanouts')],
  ['numhops hops', missing('the number of sampling.fanouts; propagation.hops of models over rows')],
  ['sampler neighborsampler', field('sampling.algorithm')],
  ['hiddenchannels numhidden hidden hiddensize nhidden hiddenfeats', field('model.hidden_dim')],
  ['numlayers nlayers', field('model.layers')],
  ['numheads nheads', field('model.heads')],
  ['featdrop dropoutinput inputdropoutrate', field('model.input_dropout')],
  ['attndrop attentiondrop', field('model.attention_dropout')],
  ['act nonlinearity activationfunction', field('model.activation')],
  ['norm batchnorm', field('model.normalization')],
  ['jk skip skipconnection', field('model.residual')],
  ['normalizefeatures scalefeatures', field('features.standardize')],
  ['evalevery evalsteps valevery', field('evaluation.every_epochs')],
  ['tasktype objective problemtype loss lossfn criterion', missing(learnt)],
  ['metrics monitor scoring evalmetric', field('evaluation.metric')],
  ['aggr aggregator aggregation', missing('GRAPHSAGE takes the mean; other sums are other types')],
  ['inchannels infeats numfeatures inputdim outchannels', missing(fromDataset)],
  ['numclasses outdim outputdim numnodes', missing(fromDataset)],
  ['edgeattr edgedim edgefeatures', missing('no edge features; KHOP_WEIGHTED reads edge weights')],
  ['metapath metapaths edgetypes', field('relations.only')],
  ['nodetype targettype targetntype predictntype', field('relations.target')],
  ['nodetypes ntypes', missing(fromDataset)],
  ['numbases nbases', field('model.bases')],
  ['gpu gpus numgpus cuda device accelerator', missing(noDeviceChoice)],
  ['numworkers workers', missing('placement.policy decides how many devices sample')],
  ['split splits trainmask valmask testmask', missing('splits of nodes belong to the dataset')],
  ['negsampling negsamplingratio numnegs', field('links.negatives.count')],
  ['walklength', field('links.walks.length')],
  ['contextsize windowsize', field('links.walks.window')],
  ['walkspernode numwalks', field('links.walks.per_node')],
  ['shuffle', missing('every epoch is a new permutation, keyed by training.random_seed')],
  ['resume saveevery checkpointevery', field('checkpoint.every_epochs')],
  ['warmstart initfrom pretrained', missing('gnnctl job create --from JOB@best begins with them')],
];

/** By the name of the enum, as in the proto. */
const values: Readonly<Record<string, readonly (readonly [words: string, hint: string])[]>> = {
  ModelType: [
    ['mlp linear appnp cheb pna ggnn', `not there; ${ownModel}`],
    ['han heterogat rgat simplehgn', 'not there; nearest is HGT'],
  ],
  SamplingAlgorithm: [
    ['neighbor neighbour khop uniform neighborsampler', 'did you mean KHOP_UNIFORM?'],
    ['weighted', 'did you mean KHOP_WEIGHTED?'],
    ['walk pinsage node2vec', 'did you mean RANDOM_WALK?'],
    ['cluster clustergcn saint graphsaint shadow ladies fastgcn', 'not there; nearest is LABOR'],
  ],
  Normalization: [['batch batchnorm batchnorm1d', 'not there; nearest is LAYER']],
  Activation: [['gelu silu swish tanh sigmoid', 'not there; nearest is ELU']],
  OptimizerType: [['adagrad rmsprop lamb', 'not there; nearest is ADAM']],
  Standardize: [
    ['true yes', 'did you mean ON?'],
    ['false no none', 'did you mean OFF?'],
  ],
  EvaluationMethod: [['full fullgraph', 'did you mean EXACT?']],
  JobTask: [
    ['link linkprediction edge edgeprediction', 'did you mean LINKS?'],
    ['embedding embeddings unsupervised deepwalk', 'did you mean LINKS, links.positives WALKS?'],
    ['edgeclassification edgeregression linklabel labels', 'did you mean LINK_LABELS?'],
    ['classification multilabel regression node nodeclassification', 'did you mean NODES?'],
  ],
};

const meanings = new Map(
  keys.flatMap(([words, meaning]) => words.split(' ').map((word) => [word, meaning] as const)),
);

/** Paths of all fields that hints name. */
export const foreignFields: readonly string[] = keys.flatMap(([, meaning]) =>
  'field' in meaning ? [meaning.field] : [],
);

/** What a key of another library means; undefined where it is not known. */
export function meaningOfKey(key: string): Meaning | undefined {
  return meanings.get(plain(key));
}

/** What to say of a value of another library; undefined where it is not known. */
export function hintForValue(enumName: string, value: string): string | undefined {
  const type = enumName === 'ModelType' ? typeCalled(plain(value)) : undefined;
  if (type !== undefined) return `did you mean ${type}?`;
  const known = values[enumName] ?? [];
  return known.find(([words]) => words.split(' ').includes(plain(value)))?.[1];
}

function plain(word: string): string {
  return word.toLowerCase().replaceAll(/[^a-z0-9]/g, '');
}
