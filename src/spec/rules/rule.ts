import type { JobSpecInput, SpecDraft } from '../job-spec.ts';
import type { ResolveContext } from '../resolve-job-spec.ts';
import type { SpecChecker } from '../spec-checker.ts';

/** What a rule across fields may look at. */
export interface RuleFacts {
  readonly check: SpecChecker;
  /** As the user sent it: what is unset there has been filled in in the draft, where it can be. */
  readonly given: JobSpecInput;
  readonly context: ResolveContext;
}

/** Checks fields against each other, and fills in defaults that follow from others. */
export type Rule = (spec: SpecDraft, facts: RuleFacts) => void;
