import { ModelInput } from '../api/gen/gnnd/v1/field_pb.ts';
import type { JobSpec, ModelType } from './job-spec.ts';
import { kindOf } from './model-kinds.ts';

/** Which parts of a spec a job reads: by its kind, what it learns, and its model's batches. */

export type SpecPart =
  | 'history'
  | 'inference'
  | 'labels'
  | 'links'
  | 'links.labels'
  | 'links.negatives'
  | 'model.normalization'
  | 'placement.samplers'
  | 'propagation'
  | 'relations'
  | 'sampling'
  | 'sampling.locality'
  | 'training';

const unreadByKind: Readonly<Record<string, readonly SpecPart[]>> = {
  TRAINING: ['inference'],
  // An inference has the spec of its model's job, trains nothing and draws no batch.
  INFERENCE: ['training', 'history', 'sampling.locality', 'placement.samplers'],
  // Somebody else trains; batches are drawn as for a training.
  LOAD: [
    ...(['training', 'links', 'links.labels', 'links.negatives'] as const),
    ...(['history', 'sampling.locality', 'inference'] as const),
  ],
};

/** What the dataset knows of nodes; which pairs are links; what it knows of links. */
const unreadByTask: Readonly<Record<string, readonly SpecPart[]>> = {
  NODES: ['links', 'links.labels', 'links.negatives'],
  LINKS: ['labels', 'history', 'links.labels'],
  LINK_LABELS: ['labels', 'history', 'links.negatives'],
};

type Why = (type: ModelType) => string;

const noRows: Why = (type) => `${type} reads neighbours and no propagated features`;
const noNeighbours: Why = (type) => `${type} reads propagated features and no neighbours`;
const severalTypes: Why = (type) => `${type} reads several types of nodes, which have none yet`;
const oneType: Why = (type) => `${type} reads nodes of one type and one relation`;
const ownLayers: Why = (type) => `layers of a ${type} are its own, no row is gnnd's`;

const unreadByInput: Readonly<Record<ModelInput, Readonly<Partial<Record<SpecPart, Why>>>>> = {
  [ModelInput.UNSPECIFIED]: { propagation: noRows, relations: oneType },
  [ModelInput.ROWS]: {
    history: noNeighbours,
    'model.normalization': noNeighbours,
    'placement.samplers': noNeighbours,
    relations: oneType,
    sampling: noNeighbours,
    'sampling.locality': noNeighbours,
  },
  [ModelInput.SCRIPT]: {
    history: ownLayers,
    'model.normalization': ownLayers,
    propagation: noRows,
    relations: oneType,
  },
  [ModelInput.RELATIONS]: {
    history: severalTypes,
    propagation: noRows,
    'sampling.locality': severalTypes,
  },
};

/** Why models of a type read nothing of a part; null where they read it. */
export function whyUnread(type: ModelType, part: SpecPart): string | null {
  return unreadByInput[kindOf(type).input][part]?.(type) ?? null;
}

interface Reader {
  /** Unset: TRAINING. */
  readonly kind?: JobSpec['kind'] | undefined;
  /** Unset: NODES. */
  readonly task?: JobSpec['task'] | undefined;
  /** Unset: a model that reads the part. */
  readonly model?: Pick<JobSpec['model'], 'type'>;
}

/** Whether a job reads a part of its spec. */
export function reads(
  { kind = 'TRAINING', task = 'NODES', model }: Reader,
  part: SpecPart,
): boolean {
  const isOfKind = unreadByKind[kind]?.includes(part) !== true;
  const isOfTask = unreadByTask[task]?.includes(part) !== true;
  return isOfKind && isOfTask && (model === undefined || whyUnread(model.type, part) === null);
}
