import type { JobSpec, JobSpecInput } from './job-spec.ts';
import { integerLimits, pluginOptionsMax, type Range, specDefaults } from './limits.ts';
import {
  type PluginLookup,
  resolvePluginFile,
  unusedPluginFile,
  unusedText,
} from './resolve-plugin.ts';
import { type SpecChecker, share, show, unusedField } from './spec-checker.ts';

type Sampling = JobSpec['sampling'];
type SamplingInput = JobSpecInput['sampling'];

/** The sampling part of a spec; `hasEdgeWeights` is null when the dataset is not known. */
export function resolveSampling(
  check: SpecChecker,
  sampling: SamplingInput,
  context: { readonly hasEdgeWeights: boolean | null; readonly pluginFile: PluginLookup },
): Sampling {
  const defaults = specDefaults.sampling;
  const path = 'spec.sampling.algorithm';
  const algorithm = check.choice(
    path,
    sampling?.algorithm,
    ['KHOP_UNIFORM', 'KHOP_WEIGHTED', 'RANDOM_WALK', 'LABOR', 'KHOP_PLUGIN'],
    defaults.algorithm,
  );
  if (algorithm === 'KHOP_WEIGHTED' && context.hasEdgeWeights === false) {
    check.violate(path, 'KHOP_WEIGHTED: the dataset has no edge weights');
  }
  const replace = check.flag('spec.sampling.replace', sampling?.replace, defaults.replace);
  if (replace && algorithm !== 'KHOP_UNIFORM' && algorithm !== 'KHOP_WEIGHTED') {
    check.violate('spec.sampling.replace', `true: not with algorithm ${algorithm}`);
  }
  return {
    fanouts: resolveFanouts(check, sampling, algorithm),
    algorithm,
    replace,
    expansion: check.choice(
      'spec.sampling.expansion',
      sampling?.expansion,
      ['ALL', 'NEW'],
      defaults.expansion,
    ),
    walk: resolveWalk(check, sampling?.walk, algorithm === 'RANDOM_WALK'),
    labor: resolveLabor(check, sampling?.labor, algorithm === 'LABOR'),
    plugin: resolvePlugin(check, sampling?.plugin, algorithm, context.pluginFile),
  };
}

function resolveFanouts(
  check: SpecChecker,
  sampling: SamplingInput,
  algorithm: Sampling['algorithm'],
): readonly number[] {
  const fanouts = sampling?.fanouts ?? [];
  if (algorithm === 'RANDOM_WALK') {
    if (fanouts.length > 0) {
      check.violate(
        'spec.sampling.fanouts',
        'expected none for RANDOM_WALK, which has walk.neighbors and model.layers',
      );
    }
    return [];
  }
  if (fanouts.length === 0) return specDefaults.fanouts;
  const hopsMax = integerLimits.layers.max;
  if (fanouts.length > hopsMax) {
    check.violate('spec.sampling.fanouts', `${fanouts.length} hops: expected 1 to ${hopsMax}`);
    return fanouts.slice(0, hopsMax);
  }
  checkFanouts(check, 'spec.sampling.fanouts', fanouts);
  return fanouts;
}

export function checkFanouts(check: SpecChecker, path: string, fanouts: readonly number[]): void {
  const { min, max } = integerLimits.fanout;
  fanouts.forEach((fanout, hop) => {
    if (fanout === -1 || (Number.isInteger(fanout) && fanout >= min && fanout <= max)) return;
    check.violate(
      `${path}[${hop}]`,
      `${show(fanout)}: expected an integer from ${min} to ${max}, or -1 for all neighbours`,
    );
  });
}

function resolveWalk(
  check: SpecChecker,
  walk: NonNullable<SamplingInput>['walk'],
  isUsed: boolean,
): Sampling['walk'] {
  const path = (field: string) => `spec.sampling.walk.${field}`;
  if (!isUsed) {
    const foreign = (field: string, value: number | undefined) =>
      unusedField(check, path(field), value, 0, 'algorithm RANDOM_WALK');
    return {
      walks: foreign('walks', walk?.walks),
      length: foreign('length', walk?.length),
      restartProb: foreign('restart_prob', walk?.restartProb),
      neighbors: foreign('neighbors', walk?.neighbors),
    };
  }
  const defaults = specDefaults.walk;
  const integer = (field: string, value: number | undefined, range: Range, fallback: number) =>
    check.integer(path(field), value, range, fallback);
  return {
    walks: integer('walks', walk?.walks, integerLimits.walks, defaults.walks),
    length: integer('length', walk?.length, integerLimits.walkLength, defaults.length),
    restartProb: check.real(path('restart_prob'), walk?.restartProb, share, defaults.restartProb),
    neighbors: integer('neighbors', walk?.neighbors, integerLimits.neighbors, defaults.neighbors),
  };
}

function resolvePlugin(
  check: SpecChecker,
  plugin: NonNullable<SamplingInput>['plugin'],
  algorithm: Sampling['algorithm'],
  lookup: PluginLookup,
): Sampling['plugin'] {
  const at = 'spec.sampling.plugin';
  const owner = 'algorithm KHOP_PLUGIN';
  const weights = check.flag(`${at}.weights`, plugin?.weights, false);
  const options = plugin?.options ?? '';
  if (algorithm !== 'KHOP_PLUGIN') {
    unusedText(check, `${at}.options`, options, owner);
    if (weights) check.violate(`${at}.weights`, `true: only for ${owner}`);
    return { ...unusedPluginFile(check, at, plugin, owner), options: '', weights: false };
  }
  if (options.length > pluginOptionsMax || options.includes('\0')) {
    const expected = `at most ${pluginOptionsMax} characters, none of them NUL`;
    check.violate(`${at}.options`, `${options.length} characters: expected ${expected}`);
  }
  return {
    ...resolvePluginFile(check, at, plugin, { lookup, kind: 'SAMPLER', owner }),
    options,
    weights,
  };
}

function resolveLabor(
  check: SpecChecker,
  labor: NonNullable<SamplingInput>['labor'],
  isUsed: boolean,
): Sampling['labor'] {
  const path = 'spec.sampling.labor.dependency_window';
  const given = labor?.dependencyWindow;
  if (!isUsed) return { dependencyWindow: unusedField(check, path, given, 0, 'algorithm LABOR') };
  const { dependencyWindow: fallback } = specDefaults.labor;
  const range = integerLimits.dependencyWindow;
  return { dependencyWindow: check.integer(path, given, range, fallback) };
}
