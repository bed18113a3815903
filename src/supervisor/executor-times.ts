import { counters, type ExecutorSnapshot, stages, waitSides } from '../native/contract.ts';
import type { ExecutorTimes } from '../records/job-record.ts';
import type { Look } from './look.ts';

/** Where the time of a segment's executors goes, lap by lap. */
export class ExecutorTimer {
  readonly #deviceNames: readonly string[];
  #before: Look | null = null;

  constructor(deviceNames: readonly string[]) {
    this.#deviceNames = deviceNames;
  }

  start(look: Look): void {
    this.#before = look;
  }

  /**
   * Times since the last lap, or the start, by executor in the order of their starts. Empty
   * for a second lap at the same look: the first of the epochs that end together gets the time.
   */
  lap(now: Look): readonly ExecutorTimes[] {
    const before = this.#before;
    this.#before = now;
    if (before === null || before.atMs === now.atMs) return [];
    const earlier = new Map(before.snapshot.executors.map((e) => [e.incarnation, e]));
    return now.snapshot.executors.flatMap((executor) => {
      const base = earlier.get(executor.incarnation);
      if (base?.phase === 'REAPED') return [];
      const sinceMs = base === undefined ? executor.registeredNs / 1e6 : before.atMs;
      return [
        {
          role: executor.role,
          device: this.#deviceNames[executor.device] ?? `device ${executor.device}`,
          durationNs: Math.max(0, Math.round((now.atMs - sinceMs) * 1e6)),
          ...differenceOf(executor, base),
        },
      ];
    });
  }
}

function differenceOf(executor: ExecutorSnapshot, base: ExecutorSnapshot | undefined) {
  const stage = (name: (typeof stages)[number]) => {
    const index = stages.indexOf(name);
    return (executor.stages[index]?.totalNs ?? 0) - (base?.stages[index]?.totalNs ?? 0);
  };
  const wait = (name: (typeof waitSides)[number]) => {
    const index = waitSides.indexOf(name);
    return (executor.waits[index]?.totalNs ?? 0) - (base?.waits[index]?.totalNs ?? 0);
  };
  const now = (name: keyof typeof counters) => executor.counters[counters[name]] ?? 0;
  const count = (name: keyof typeof counters) => now(name) - (base?.counters[counters[name]] ?? 0);
  return {
    sampleNs: stage('SAMPLE'),
    markNs: stage('MARK'),
    copyNs: stage('COPY'),
    extractNs: stage('EXTRACT'),
    trainNs: stage('TRAIN'),
    applyNs: stage('APPLY'),
    evaluateNs: stage('EVALUATE'),
    waitEnqueueNs: wait('ENQUEUE'),
    waitDequeueNs: wait('DEQUEUE'),
    waitDueNs: wait('DUE'),
    waitTurnNs: wait('TURN'),
    waitExtractNs: wait('EXTRACT'),
    pruneNs: stage('PRUNE'),
    historyNs: count('historyUpdateNs'),
    cachedRows: count('deviceRows'),
    peerRows: count('peerRows'),
    readRows: count('hostRows') + count('diskRows'),
    prunedRows: count('prunedRows'),
    historyLookups: count('historyLookUps'),
    historyHits: count('historyHits'),
    historyCompared: count('historyCompared'),
    historySimilar: count('historySimilar'),
    historyCosine: count('historyCosine') / 1e6,
    historyLag: count('historyLag'),
    cacheBorder: now('cacheRows') - now('cacheGivenUpRows'),
    cacheGivenUpRows: now('cacheGivenUpRows'),
  };
}
