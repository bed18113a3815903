import { type Call, type Outcome, sent } from './outcome.ts';

/** Runs in each thread of the pool: loads a task's module when it first comes, and calls it. */
export async function runCall({ module, name, input }: Call): Promise<Outcome> {
  try {
    const loaded: Readonly<Record<string, unknown>> = await import(module);
    const task = loaded[name];
    if (typeof task !== 'function') throw new Error(`${module} exports no function ${name}`);
    return { kind: 'DONE', value: await task(input) };
  } catch (error) {
    return { kind: 'FAILED', error: sent(error) };
  }
}
