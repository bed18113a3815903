import { join } from 'node:path';
import type { JobLayout } from '../plan/plan.ts';
import { type AttemptContext, runTask, timed } from '../supervisor/supervisor.ts';

/**
 * What only a user's model itself knows: its tensors, and whether it keeps its contract. Asked in a
 * child process, because that runs code of the user's.
 */
export class ModelProbe {
  readonly #abort = new AbortController();
  #asking: Promise<unknown> = Promise.resolve();

  /** `layout` with the model's tensors; as it is for a model of ours. Rejects with a TaskError. */
  async complete(layout: JobLayout, context: ProbeContext): Promise<JobLayout> {
    if (layout.model.type !== 'TORCHSCRIPT') return layout;
    return await timed(context, 'probe model', () => this.#ask(layout, context));
  }

  async #ask(layout: JobLayout, { input, native, topologyFd }: ProbeContext): Promise<JobLayout> {
    const asking = runTask(
      { role: 'PROBE', options: { model: layout.model, weighted: meetsWeights(layout) } },
      {
        cores: input.devices[0]?.cores ?? [],
        topologyFd,
        threads: 1,
        logPath: join(input.logFolder, 'probe.log'),
        instructionSet: native.hostInstructionSet(),
        signal: this.#abort.signal,
      },
    );
    this.#asking = asking.catch(() => {});
    const answer = await asking;
    if (answer.role === 'PROBE') return { ...layout, manifest: answer.value };
    throw new Error(`a probe was answered with ${answer.role}`);
  }

  /** Resolves when no process of ours is left. */
  async stop(): Promise<void> {
    this.#abort.abort();
    await this.#asking;
  }
}

/** Records carry weights for all but KHOP_WEIGHTED, whose evaluations take the dataset's. */
function meetsWeights({ sampling: { algorithm, plugin } }: JobLayout): boolean {
  return plugin.weights || ['RANDOM_WALK', 'LABOR', 'KHOP_WEIGHTED'].includes(algorithm);
}

type ProbeContext = Pick<AttemptContext, 'input' | 'native' | 'clock' | 'emit'> & {
  readonly topologyFd: number | null;
};
