import { move, transferableSymbol, valueSymbol } from 'piscina';
import { type Call, type Outcome, sent } from './outcome.ts';

/** Runs in each thread of the pool: loads a task's module when it first comes, and calls it. */
export async function runCall(call: Call): Promise<unknown> {
  const outcome = await outcomeOf(call);
  return move({ [valueSymbol]: outcome, [transferableSymbol]: buffersIn(outcome) });
}

/** Memory of an answer's own arrays, which changes hands: a file of a gigabyte is not copied. */
function buffersIn(outcome: Outcome): readonly ArrayBuffer[] {
  const answer = outcome.kind === 'DONE' ? Object(outcome.value) : {};
  return [answer, ...Object.values(answer)].flatMap((part) => {
    if (!ArrayBuffer.isView(part) || !(part.buffer instanceof ArrayBuffer)) return [];
    return part.byteLength > 0 && part.byteLength === part.buffer.byteLength ? [part.buffer] : [];
  });
}

async function outcomeOf({ module, name, input }: Call): Promise<Outcome> {
  try {
    const loaded: Readonly<Record<string, unknown>> = await import(module);
    const task = loaded[name];
    if (typeof task !== 'function') throw new Error(`${module} exports no function ${name}`);
    return { kind: 'DONE', value: await task(input) };
  } catch (error) {
    return { kind: 'FAILED', error: sent(error) };
  }
}
