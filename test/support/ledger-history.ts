/**
 * What executors and the daemon did to a job's segment (GNND_LEDGER_TRACE of
 * native/core/ledger/trace.h), held against its rules (docs/formats/segment.md). A change took
 * effect between its two records; of whom was killed between them, perhaps. So each change waits
 * until its process says that it did it, or somebody else is seen to have found its result.
 */

export interface Verdict {
  /** Sentences; none: the history obeys the rules. */
  readonly violations: readonly string[];
  /** Changes that took effect. */
  readonly changes: number;
  /** Changes whose process died between its two records, and which others found done. */
  readonly unsaid: number;
  readonly deaths: number;
  /** Committed steps, and all that there are to be. */
  readonly version: number;
  readonly steps: number;
}

const recordBytes = 64;
/** Further ones say no more. */
const mostViolations = 20;

const kinds = [
  '',
  'CREATED',
  'SET',
  'REGISTERED',
  'RECLAIMS',
  'RECLAIMED',
  'TRIES',
  'DID',
  'MISSED',
  'READS',
  'STOPS',
] as const;
type Kind = (typeof kinds)[number];
const words = ['BATCH', 'CHUNK', 'VERSION', 'EVALUATION', 'TURN'] as const;
type Word = (typeof words)[number];
const states = ['PENDING', 'CLAIMED', 'READY', 'TAKEN', 'TRAINED', 'COMMITTED'] as const;
type State = (typeof states)[number];
const roles = ['', 'SAMPLER', 'TRAINER', 'STANDBY'] as const;

interface Entry {
  readonly state: State;
  readonly attempt: number;
  readonly epoch: number;
  readonly owner: number;
}

/** native/core/ledger/ledger.h */
export function unpack(word: bigint): Entry {
  return {
    state: states[Number(word >> 61n)] ?? 'COMMITTED',
    attempt: Number((word >> 52n) & 511n),
    epoch: Number((word >> 28n) & 0xff_ffffn),
    owner: Number(word & 0xfff_ffffn),
  };
}

interface Change {
  readonly word: Word;
  readonly index: number;
  readonly owner: number;
  readonly pid: number;
  readonly old: bigint;
  readonly next: bigint;
  readonly further: number;
  isDone: boolean;
}

/** native/core/ledger/shape.h */
class Shape {
  readonly batches: number;
  readonly epochs: number;
  readonly #group: number;
  readonly #staleness: number;
  readonly #slots: number;
  readonly isBornReady: boolean;
  readonly isEvaluated: boolean;
  readonly #every: number;

  constructor(numbers: readonly bigint[]) {
    const of = (at: number) => Number(numbers[at]);
    [this.batches, this.epochs, this.#group] = [of(0), of(1), of(2)];
    [this.#staleness, this.#slots, this.isBornReady] = [of(3), of(4), of(5) % 2 === 1];
    [this.isEvaluated, this.#every] = [of(5) >= 2, of(6)];
  }
  get groups(): number {
    return Math.ceil(this.batches / this.#group);
  }
  firstBatch(g: number): number {
    return Math.floor(g / this.groups) * this.batches + (g % this.groups) * this.#group;
  }
  groupOf(b: number): number {
    const index = b % this.batches;
    return Math.floor(b / this.batches) * this.groups + Math.floor(index / this.#group);
  }
  required(g: number): number {
    return Math.max(Math.floor(g / this.groups) * this.groups, g - this.#staleness);
  }
  /** Slots are free and the epoch is open up to here. */
  claimEnd(version: number): number {
    const epochEnd = (Math.floor(version / this.groups) + 1) * this.batches;
    return Math.min(this.firstBatch(version) + this.#slots, epochEnd);
  }
  isEvaluationDue(epoch: number): boolean {
    if (!this.isEvaluated) return false;
    return epoch + 1 === this.epochs || (this.#every > 0 && (epoch + 1) % this.#every === 0);
  }
}

export function checkHistory(bytes: Buffer): Verdict {
  return new History().verdict(bytes);
}

class History {
  #shape = new Shape([1n, 1n, 1n, 0n, 1n, 0n, 0n, 0n]);
  readonly #violations: string[] = [];
  readonly #values = new Map<string, bigint>();
  readonly #open = new Map<string, Change[]>();
  readonly #executors = new Map<number, { role: string; device: number; isDead: boolean }>();
  readonly #pids = new Map<number, number>();
  /** Batches that are computed: who does. */
  readonly #reads = new Map<number, number>();
  /** The last epoch that is trained, once its evaluation is committed. */
  #stop = Number.POSITIVE_INFINITY;
  #mayStop = Number.POSITIVE_INFINITY;
  #changes = 0;
  #unsaid = 0;
  #deaths = 0;

  verdict(bytes: Buffer): Verdict {
    for (let at = 0; at + recordBytes <= bytes.length; at += recordBytes) {
      const kind = kinds[bytes.readUInt32LE(at)] ?? '';
      const numbers = Array.from({ length: 7 }, (_, i) => bytes.readBigUInt64LE(at + 8 + 8 * i));
      const before = this.#violations.length;
      this.#read(kind, bytes.readUInt32LE(at + 4), numbers);
      for (let i = before; i < this.#violations.length; i += 1) {
        this.#violations[i] = `record ${at / recordBytes}: ${this.#violations[i]}`;
      }
      if (this.#violations.length >= mostViolations) break;
    }
    if (bytes.length % recordBytes !== 0) this.#violations.push('the last record is cut off');
    return {
      violations: this.#violations,
      changes: this.#changes,
      unsaid: this.#unsaid,
      deaths: this.#deaths,
      version: this.#version,
      steps: Math.min(this.#shape.epochs, this.#stop + 1) * this.#shape.groups,
    };
  }

  get #version(): number {
    return Number(this.#value('VERSION', 0));
  }

  #value(word: Word, index: number): bigint {
    return this.#values.get(`${word} ${index}`) ?? 0n;
  }

  #expect(holds: boolean, sentence: string): void {
    if (!holds) this.#violations.push(sentence);
  }

  #read(kind: Kind, owner: number, numbers: readonly bigint[]): void {
    const [first = 0n, second = 0n, third = 0n, fourth = 0n, fifth = 0n] = numbers;
    const word = words[Number(first)] ?? 'TURN';
    const pid = Number(numbers[6] ?? 0n);
    switch (kind) {
      case 'CREATED':
        this.#shape = new Shape(numbers);
        return;
      case 'SET':
        this.#expect(this.#executors.size === 0, `${word} is set while executors run`);
        this.#values.set(`${word} ${second}`, third);
        if (word === 'EVALUATION' && isCommitted(third, this.#mayStop)) this.#stop = this.#mayStop;
        return;
      case 'REGISTERED': {
        const role = roles[Number(first)] ?? '';
        this.#expect(!this.#executors.has(owner), `incarnation ${owner} is given twice`);
        this.#executors.set(owner, { role, device: Number(second), isDead: false });
        return;
      }
      case 'RECLAIMS': {
        const dead = this.#executors.get(owner);
        this.#expect(dead !== undefined, `${owner} is reclaimed from, nobody knows it`);
        if (dead !== undefined) dead.isDead = true;
        this.#deaths += 1;
        return;
      }
      case 'RECLAIMED':
        this.#reclaimed(owner);
        return;
      case 'READS':
        this.#reading(owner, Number(first));
        return;
      case 'STOPS':
        this.#mayStop = Number(first);
        return;
      case 'TRIES':
      case 'DID':
      case 'MISSED': {
        const change = { word, index: Number(second), owner, pid, old: third, next: fourth };
        const all = { ...change, further: Number(fifth), isDone: false };
        if (kind === 'TRIES') this.#tries(all);
        else this.#says(all, kind === 'DID');
        return;
      }
      default:
        this.#expect(false, 'this is no record');
    }
  }

  #tries(change: Change): void {
    this.#expectAlive(change.owner === 0 ? (this.#pids.get(change.pid) ?? 0) : change.owner);
    if (change.owner !== 0) this.#pids.set(change.pid, change.owner);
    const key = `${change.word} ${change.index}`;
    const open = this.#open.get(key) ?? [];
    const isTwice = open.some(({ pid }) => pid === change.pid);
    this.#expect(!isTwice, `process ${change.pid} tries to change ${key} twice at once`);
    this.#open.set(key, [...open, change]);
  }

  #expectAlive(owner: number): void {
    if (owner === 0) return;
    const executor = this.#executors.get(owner);
    this.#expect(executor !== undefined, `${owner} acts and was never registered`);
    this.#expect(executor?.isDead !== true, `${owner} acts, though it was reclaimed from`);
  }

  #says(said: Change, isDone: boolean): void {
    const key = `${said.word} ${said.index}`;
    const open = this.#open.get(key) ?? [];
    const change = open.find(({ pid, next }) => pid === said.pid && next === said.next);
    if (change === undefined) {
      this.#expect(false, `${said.pid} changed ${key} and had not tried to`);
      return;
    }
    if (isDone && !change.isDone) {
      this.#reach(key, change.old, `${said.owner || said.pid} found`);
      this.#apply(key, change);
    }
    if (!isDone) {
      this.#expect(!change.isDone, `${key} was changed by ${said.owner}, which missed it`);
      this.#expect(said.word !== 'VERSION', 'a step was committed without the lock');
    }
    this.#open.set(
      key,
      (this.#open.get(key) ?? []).filter((other) => other !== change),
    );
  }

  /** Lets changes that were tried take effect until the word is this one. */
  #reach(key: string, value: bigint, who: string): void {
    const path = this.#pathTo(key, (found) => found === value);
    if (path === null) {
      const is = this.#values.get(key) ?? 0n;
      this.#expect(false, `${key} is ${told(key, is)}, ${who} ${told(key, value)}`);
      this.#values.set(key, value);
      return;
    }
    for (const change of path) this.#took(key, change);
  }

  /** The same, until it holds; false where it cannot. */
  #settle(word: Word, index: number, holds: (value: bigint) => boolean): boolean {
    const key = `${word} ${index}`;
    const path = this.#pathTo(key, holds);
    for (const change of path ?? []) this.#took(key, change);
    return path !== null;
  }

  #pathTo(key: string, holds: (value: bigint) => boolean): readonly Change[] | null {
    const open = (this.#open.get(key) ?? []).filter(({ isDone }) => !isDone);
    const paths: { value: bigint; path: readonly Change[] }[] = [
      { value: this.#values.get(key) ?? 0n, path: [] },
    ];
    for (const { value, path } of paths) {
      if (holds(value)) return path;
      for (const change of open) {
        if (change.old !== value || path.includes(change)) continue;
        paths.push({ value: change.next, path: [...path, change] });
      }
    }
    return null;
  }

  #took(key: string, change: Change): void {
    this.#apply(key, change);
    this.#unsaid += 1;
  }

  #apply(key: string, change: Change): void {
    change.isDone = true;
    this.#changes += 1;
    if (change.word === 'BATCH') this.#checkBatch(change);
    else if (change.word === 'CHUNK') this.#checkChunk(change);
    else if (change.word === 'VERSION') this.#checkCommit(change);
    else if (change.word === 'EVALUATION') this.#checkEvaluation(change);
    this.#values.set(key, change.next);
  }

  // ---- the rules ------------------------------------------------------------------------------

  /** The word before the change, as the epoch of `next` sees it. */
  #before({ old, next }: Change, isBatch: boolean): Entry {
    const [from, to] = [unpack(old), unpack(next)];
    const untouched: State = isBatch && this.#shape.isBornReady ? 'READY' : 'PENDING';
    if (from.epoch < to.epoch) return { ...to, state: untouched, attempt: 0, owner: 0 };
    return from.state === 'PENDING' ? { ...from, state: untouched } : from;
  }

  #roleOf(owner: number): string {
    return this.#executors.get(owner)?.role ?? 'DAEMON';
  }

  /** Checks who changes an entry: an owner its own, the daemon that of a dead one. */
  #checkHands(what: string, from: Entry, to: Entry, owner: number): void {
    this.#expect(from.epoch === to.epoch, `${what} goes back to epoch ${to.epoch}`);
    const isReclaim = owner === 0;
    const attempt = Math.min(511, from.attempt + (isReclaim ? 1 : 0));
    this.#expect(to.attempt === attempt, `${what} has attempt ${to.attempt}, not ${attempt}`);
    if (isReclaim) {
      const isDead = this.#executors.get(from.owner)?.isDead === true;
      this.#expect(isDead, `${what} is taken from ${from.owner}, which lives`);
    } else if (from.owner !== 0) {
      this.#expect(from.owner === owner, `${what} is ${from.owner}'s, changed by ${owner}`);
    }
    const holder = to.state === 'CLAIMED' || to.state === 'TAKEN' ? owner : 0;
    this.#expect(to.owner === holder, `${what} is left to ${to.owner}`);
  }

  #checkBatch(change: Change): void {
    const { index, owner, next } = change;
    const [from, to] = [this.#before(change, true), unpack(next)];
    const b = to.epoch * this.#shape.batches + index;
    const what = `batch ${b}`;
    this.#checkHands(what, from, to, owner);
    const who = { SAMPLER: 'SAMPLER', DAEMON: 'DAEMON' }[this.#roleOf(owner)] ?? 'TRAINER';
    switch (`${who} ${from.state}>${to.state}`) {
      case 'SAMPLER PENDING>CLAIMED':
        this.#checkClaim(b, owner);
        return;
      case 'TRAINER TAKEN>TRAINED':
        this.#expect(this.#reads.get(b) === owner, `${what} is handed in, nobody computed it`);
        this.#reads.delete(b);
        return;
      case 'TRAINER TAKEN>READY':
        this.#expect(!this.#reads.has(b), `${what} is given back while it is computed`);
        return;
      case 'DAEMON TAKEN>READY':
        this.#reads.delete(b);
        return;
      case 'SAMPLER CLAIMED>READY':
      case 'TRAINER READY>TAKEN':
      case 'DAEMON CLAIMED>PENDING':
        return;
      default:
        this.#expect(false, `${what} goes from ${from.state} to ${to.state} by ${who} ${owner}`);
    }
  }

  #checkClaim(b: number, owner: number): void {
    const mayBe = (value: bigint) => this.#shape.claimEnd(Number(value)) > b;
    const isFree = this.#settle('VERSION', 0, mayBe);
    this.#expect(isFree, `batch ${b} is claimed at version ${this.#version}: its slot is not free`);
    const head = this.#shape.firstBatch(this.#version);
    this.#expect(b >= head, `batch ${b} is claimed, all below ${head} are committed`);
    const { device = 0 } = this.#executors.get(owner) ?? {};
    const holds = this.#settle('TURN', device, (turn) => (turn & 1n) === 0n);
    this.#expect(holds, `batch ${b} is claimed by ${owner}, whose device a standby has`);
  }

  #reading(owner: number, b: number): void {
    this.#expectAlive(owner);
    const entry = unpack(this.#value('BATCH', b % this.#shape.batches));
    const epoch = Math.floor(b / this.#shape.batches);
    const isOwn = entry.state === 'TAKEN' && entry.owner === owner && entry.epoch === epoch;
    this.#expect(isOwn, `batch ${b} is computed by ${owner}, which has not taken it`);
    const group = this.#shape.groupOf(b);
    const needs = this.#shape.required(group);
    const isDue = this.#settle('VERSION', 0, (value) => Number(value) >= needs);
    this.#expect(isDue, `batch ${b} is computed at version ${this.#version}, needs ${needs}`);
    this.#expect(this.#version <= group, `batch ${b} is computed after its group's commit`);
    if (epoch > 0 && this.#shape.isEvaluationDue(epoch - 1)) {
      const isOver = this.#settle('EVALUATION', 0, (value) => isCommitted(value, epoch - 1));
      this.#expect(isOver, `batch ${b} is computed before the evaluation of epoch ${epoch - 1}`);
    }
    this.#expect(epoch <= this.#stop, `batch ${b} is computed after the job's early end`);
    const { role, device = 0 } = this.#executors.get(owner) ?? {};
    if (role === 'STANDBY') {
      const holds = this.#settle('TURN', device, (turn) => (turn & 1n) === 1n);
      this.#expect(holds, `batch ${b} is computed by standby ${owner}, whose turn it is not`);
    }
    this.#reads.set(b, owner);
  }

  #checkCommit({ old, next, owner }: Change): void {
    const version = Number(old);
    const { batches } = this.#shape;
    this.#expect(next === old + 1n, `version ${next} follows ${old}`);
    this.#expect(this.#roleOf(owner) !== 'SAMPLER', `Sampler ${owner} commits a step`);
    const epoch = Math.floor(version / this.#shape.groups);
    const isMeant = epoch < this.#shape.epochs && epoch <= this.#stop;
    this.#expect(isMeant, `step ${version} is committed after the job's end`);
    for (let b = this.#shape.firstBatch(version); b < this.#shape.firstBatch(version + 1); b += 1) {
      const isTrained = this.#settle('BATCH', b % batches, (word) => {
        const entry = unpack(word);
        return entry.state === 'TRAINED' && entry.epoch === epoch;
      });
      this.#expect(isTrained, `step ${version} is committed without batch ${b}`);
    }
  }

  /** Version at which a run is open. */
  #versionOf(run: number): number {
    const epochs = Math.min(this.#shape.epochs, this.#stop + 1);
    return (run < this.#shape.epochs ? run + 1 : epochs) * this.#shape.groups;
  }

  #checkChunk(change: Change): void {
    const { index, owner, next } = change;
    const [from, to] = [this.#before(change, false), unpack(next)];
    const what = `chunk ${index} of run ${to.epoch}`;
    this.#checkHands(what, from, to, owner);
    this.#expect(this.#roleOf(owner) !== 'SAMPLER', `${what} is Sampler ${owner}'s`);
    const step = `${from.state}>${to.state}`;
    const may = ['PENDING>TAKEN', 'TAKEN>TRAINED', 'TAKEN>PENDING'];
    this.#expect(owner === 0 ? step === may[2] : may.includes(step), `${what} goes ${step}`);
    if (step !== may[0]) return;
    const isLast = this.#settle('EVALUATION', 0, (value) => !isCommitted(value, to.epoch));
    this.#expect(isLast, `${what} is taken after the run's commit`);
    const version = this.#versionOf(to.epoch);
    const isOpen = this.#settle('VERSION', 0, (value) => Number(value) === version);
    this.#expect(isOpen, `${what} is taken at version ${this.#version}, not ${version}`);
  }

  #checkEvaluation({ old, next, further }: Change): void {
    const run = unpack(next).epoch;
    this.#expect(!isCommitted(old, run), `run ${run} is committed again`);
    const version = this.#versionOf(run);
    this.#expect(this.#version === version, `run ${run} is committed at version ${this.#version}`);
    for (let chunk = 0; chunk < further; chunk += 1) {
      const isDone = this.#settle('CHUNK', chunk, (word) => {
        const entry = unpack(word);
        return entry.state === 'TRAINED' && entry.epoch === run;
      });
      this.#expect(isDone, `run ${run} is committed without chunk ${chunk}`);
    }
    if (this.#mayStop === run) this.#stop = run;
  }

  /** Nothing is a dead one's any more. What it tried and was not found done never was. */
  #reclaimed(owner: number): void {
    for (const [key, value] of this.#values) {
      if (!/^(BATCH|CHUNK)/.test(key) || unpack(value).owner !== owner) continue;
      const path = this.#pathTo(key, (found) => unpack(found).owner !== owner);
      this.#expect(path !== null, `${key} stays ${told(key, value)} after ${owner}'s death`);
      for (const change of path ?? []) this.#took(key, change);
    }
    for (const [key, open] of this.#open) {
      if (!/^(BATCH|CHUNK)/.test(key)) continue;
      this.#open.set(
        key,
        open.filter((change) => change.owner !== owner),
      );
    }
  }
}

function isCommitted(evaluation: bigint, run: number): boolean {
  const { state, epoch } = unpack(evaluation);
  return state === 'COMMITTED' && epoch >= run;
}

function told(key: string, value: bigint): string {
  if (!/^(BATCH|CHUNK|EVALUATION)/.test(key)) return String(value);
  const { state, attempt, epoch, owner } = unpack(value);
  return `${state} (epoch ${epoch}, attempt ${attempt}, of ${owner || 'nobody'})`;
}
