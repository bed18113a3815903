import type { ModelOptions } from '../../src/native/contract.ts';

/** A plain GraphSAGE of these sizes. */
export function modelOptions(
  changes: Pick<ModelOptions, 'layers' | 'inDim' | 'hiddenDim' | 'outDim'> & Partial<ModelOptions>,
): ModelOptions {
  return {
    type: 'GRAPHSAGE',
    script: { path: '', sha256: '' },
    dropout: 0,
    inputDropout: 0,
    heads: 1,
    attentionDropout: 0,
    activation: 'RELU',
    normalization: 'NONE',
    residual: false,
    variant: 'NONE',
    hopLayers: 0,
    hopHiddenDim: 0,
    bases: 0,
    head: null,
    headOutputs: 1,
    numOperators: 0,
    numHops: 0,
    graph: { types: [], relations: [] },
    ...changes,
  };
}
