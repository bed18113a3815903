import type { FieldViolation } from '../../src/base/errors.ts';
import type { JobSpec } from '../../src/spec/job-spec.ts';
import type { Resolution } from '../../src/spec/resolve-job-spec.ts';
import type { PluginLookup, ResolveContext } from '../../src/spec/rules/rule.ts';

/** What specs are resolved with, and what comes of it. */

/** A host that lets jobs load nothing. */
export const noPlugins: PluginLookup = () => ({ problem: 'no plug-ins here' });

/** Devices of one core each, one of the CPU, and a dataset of which nothing is known. */
export function contextOf(changes: Partial<ResolveContext> = {}): ResolveContext {
  const deviceNames = changes.deviceNames ?? ['cpu:0'];
  return {
    deviceNames,
    deviceCores: deviceNames.map(() => 1),
    matrixLibrary: 'ONEDNN',
    ...{ numNodes: null, numEdges: null, trainNodes: null, valNodes: null, hasEdgeWeights: null },
    pluginFile: noPlugins,
    ...changes,
  };
}

/** The spec that came of it; throws with what was wrong. */
export function okOf(resolution: Resolution): JobSpec {
  if ('ok' in resolution) return resolution.ok;
  throw new Error(JSON.stringify(resolution.violations));
}

export function violationsIn(resolution: Resolution): readonly FieldViolation[] {
  return 'ok' in resolution ? [] : resolution.violations;
}
