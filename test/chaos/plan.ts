import { type Random, randomOf } from '../support/random.ts';
import { type Kind, kinds } from './catalogue.ts';

/** What one round of chaos does: all of it follows from a seed, before anything runs. */

export type Role = 'SAMPLER' | 'TRAINER' | 'STANDBY' | 'PREPARER';

export type Blow =
  /** A signal that ends a process: of one role if there is one, of whoever is there, or of all. */
  | { readonly kind: 'KILL'; readonly signal: NodeJS.Signals; readonly whom: Role | 'ANY' | 'ALL' }
  /** SIGSTOP, and SIGCONT after that; null: never, so that the watchdog must kill it. */
  | { readonly kind: 'STOP'; readonly whom: Role | 'ANY'; readonly forMs: number | null }
  | { readonly kind: 'DAEMON'; readonly signal: 'SIGKILL' | 'SIGTERM' }
  /** The daemon and nobody else, for so long. */
  | { readonly kind: 'FREEZE'; readonly forMs: number }
  /** What users do; what takes it back follows after that. */
  | { readonly kind: 'SUSPEND' | 'DRAIN' | 'DELETE'; readonly forMs: number }
  | { readonly kind: 'CANCEL'; readonly forMs: number; readonly fromBeginning: boolean }
  /** The bytes of its newest image are changed. */
  | { readonly kind: 'DAMAGE' };

export interface Hit {
  /** Share of the job's steps, 0 to 1; null: as soon as it has processes, whatever they do. */
  readonly at: number | null;
  /** The hit comes so many milliseconds after that. */
  readonly afterMs: number;
  readonly blow: Blow;
  /** Which of those whom it could hit, 0 to 1. */
  readonly which: number;
}

export interface Script {
  readonly id: string;
  readonly kind: Kind;
  /** Index of one of the kind's crews. */
  readonly crew: number;
  readonly submitAfterMs: number;
  /** The same request a second time. */
  readonly isReplayed: boolean;
  readonly everyEpochs: number;
  readonly everySteps: number;
  readonly priority: number;
  readonly isPreemptible: boolean;
  readonly hits: readonly Hit[];
}

export interface Round {
  readonly seed: number;
  readonly scripts: readonly Script[];
}

export interface PlanOptions {
  readonly jobs: number;
  /** At most so many hits a job. */
  readonly hits: number;
  /** To draw from. */
  readonly kinds: readonly Kind[];
  /** Otherwise one daemon lives through all of it. */
  readonly daemonDies: boolean;
}

/** Some kinds of jobs. */
export function drawKinds(seed: number, count: number): readonly Kind[] {
  const random = randomOf(seed);
  return kinds
    .map((kind) => ({ kind, draw: random.unit() }))
    .sort((a, b) => a.draw - b.draw)
    .slice(0, count)
    .map(({ kind }) => kind);
}

export function planRound(seed: number, options: PlanOptions): Round {
  const random = randomOf(seed);
  const scripts = Array.from({ length: options.jobs }, (_, index) =>
    planScript(random, `r${seed}-${index}`, options),
  );
  return { seed, scripts };
}

function planScript(random: Random, id: string, options: PlanOptions): Script {
  const kind = random.pick(options.kinds);
  return {
    id,
    kind,
    crew: random.integer(0, kind.crews.length - 1),
    submitAfterMs: random.integer(0, 1500),
    isReplayed: random.chance(0.3),
    everyEpochs: random.pick([0, 1, 1, 3]),
    everySteps: random.pick([0, 7, 7, 20]),
    priority: random.pick([100, 100, 100, 200]),
    isPreemptible: random.chance(0.5),
    hits: Array.from({ length: random.integer(4, options.hits) }, () => planHit(random))
      .filter(({ blow }) => options.daemonDies || blow.kind !== 'DAEMON')
      .sort((a, b) => (a.at ?? -1) - (b.at ?? -1)),
  };
}

function planHit(random: Random): Hit {
  return {
    at: random.chance(0.12) ? null : random.unit() * 0.98,
    afterMs: random.chance(0.6) ? 0 : random.integer(0, 200),
    blow: planBlow(random),
    which: random.unit(),
  };
}

const roles: readonly (Role | 'ANY' | 'ALL')[] = [
  ...(['SAMPLER', 'SAMPLER', 'TRAINER', 'TRAINER', 'TRAINER', 'STANDBY', 'STANDBY'] as const),
  ...(['PREPARER', 'ANY', 'ALL'] as const),
];
const signals: readonly NodeJS.Signals[] = [
  ...(['SIGILL', 'SIGABRT', 'SIGBUS', 'SIGFPE', 'SIGSEGV'] as const),
  ...(['SIGTERM', 'SIGQUIT', 'SIGXCPU', 'SIGUSR2'] as const),
];

function planBlow(random: Random): Blow {
  const draw = random.unit();
  const one = () => random.pick([...roles.slice(0, -1)]) as Role | 'ANY';
  const forMs = random.integer(0, 600);
  // Most are kills: they are what is counted.
  if (draw < 0.62) return { kind: 'KILL', signal: 'SIGKILL', whom: random.pick(roles) };
  if (draw < 0.7) return { kind: 'KILL', signal: random.pick(signals), whom: one() };
  if (draw < 0.75) return { kind: 'STOP', whom: one(), forMs };
  if (draw < 0.77) return { kind: 'STOP', whom: one(), forMs: null };
  if (draw < 0.83) return { kind: 'DAEMON', signal: 'SIGKILL' };
  if (draw < 0.85) return { kind: 'DAEMON', signal: 'SIGTERM' };
  if (draw < 0.87) return { kind: 'FREEZE', forMs: random.pick([200, 1000, 5000]) };
  if (draw < 0.92) return { kind: 'SUSPEND', forMs };
  if (draw < 0.95) return { kind: 'CANCEL', forMs, fromBeginning: random.chance(0.2) };
  if (draw < 0.97) return { kind: 'DRAIN', forMs };
  if (draw < 0.98) return { kind: 'DELETE', forMs };
  return { kind: 'DAMAGE' };
}
