import type { Problem } from '../records/dataset-record.ts';
import { formatCount } from '../spec/counted.ts';

export { formatCount };

/** How many problems a list keeps; the others are only counted. */
export const problemsKept = 20;

/** Collects what is wrong with a source, so that a user sees all of it at once. */
export class ProblemList {
  readonly #kept: Problem[] = [];
  #count = 0;

  /** All problems added, kept or not. */
  get count(): number {
    return this.#count;
  }

  /** The first `problemsKept` problems. */
  get kept(): readonly Problem[] {
    return this.#kept;
  }

  /** `path` is a file of the source, with `:line` where lines are known. */
  add(path: string, description: string): void {
    this.#count += 1;
    if (this.#kept.length < problemsKept) this.#kept.push({ path, description });
  }

  /** Adds the problems of another checker that found `count` of them. */
  addAll(problems: readonly Problem[], count: number): void {
    for (const problem of problems) this.add(problem.path, problem.description);
    this.#count += Math.max(0, count - problems.length);
  }

  /** Throws ImportFailure when there is any problem. */
  throwIfAny(): void {
    if (this.#count > 0) throw new ImportFailure(this.#kept, this.#count);
  }
}

/** The source cannot be imported as it is: its files are wrong, not the daemon. */
export class ImportFailure extends Error {
  readonly problems: readonly Problem[];
  readonly problemCount: number;

  constructor(problems: readonly Problem[], problemCount: number = problems.length) {
    super(summaryOf(problems, problemCount));
    this.name = 'ImportFailure';
    this.problems = problems;
    this.problemCount = problemCount;
  }
}

/** An ImportFailure with one problem. */
export function badFile(path: string, description: string): ImportFailure {
  return new ImportFailure([{ path, description }]);
}

function summaryOf(problems: readonly Problem[], problemCount: number): string {
  const first = problems[0];
  if (first === undefined) return `${formatCount(problemCount)} problems`;
  const more = problemCount > 1 ? ` (and ${formatCount(problemCount - 1)} more)` : '';
  return `${first.path}: ${first.description}${more}`;
}
