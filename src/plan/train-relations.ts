import type { GraphSchema } from '../native/contract.ts';
import { parameterPart, queuePart } from './memory-parts.ts';
import type { PlanKind } from './plan-kind.ts';
import { relationBlocks } from './relation-blocks.ts';
import { evaluationParts, extractionPart, trainBlocks } from './train-blocks.ts';

/** Training on blocks of several types; nothing is cached, and no history kept. */
export function trainRelations(schema: GraphSchema): PlanKind {
  const batches = relationBlocks(schema);
  return {
    ...trainBlocks,
    batches,
    // Such jobs run on cores alone.
    pinned: () => ({ rows: 0, bytes: 0, reason: '' }),

    ownMemory(spec, layout, facts) {
      const crew = trainBlocks.crew(spec);
      const parts = [
        ...evaluationParts(spec, layout, facts, crew),
        parameterPart(spec, layout),
        extractionPart(batches, spec, layout, facts, crew),
        queuePart(batches, spec, layout, facts),
      ];
      return { parts, rows: null, inference: null };
    },
  };
}
