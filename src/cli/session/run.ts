import type { Session } from './session.ts';

/** Turns work that needs a session into an action of commander; it answers the exit code. */
export type Run = <A extends readonly unknown[]>(
  work: (session: Session, ...args: A) => Promise<number>,
) => (...args: A) => Promise<void>;
