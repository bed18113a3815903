import { lineOf, type Source, type Violation } from './sources.ts';

/** Who may ask of which kind a job or a model is. All others ask an object of the kind. */

const askers: readonly { readonly words: RegExp; readonly by: RegExp; readonly instead: string }[] =
  [
    {
      words: /\b(takesRows|infers|isInference|isTraining|samplesNothing)\(/,
      by: /^$/,
      instead: 'workOf(spec), a view of the kind, or reads(spec, part)',
    },
    {
      words: /\bModelInput\.\w+/,
      by: /^src\/spec\/spec-parts\.ts$/,
      instead: 'reads(spec, part) of src/spec/spec-parts.ts',
    },
    {
      words: /[=!]== ?'INFERENCE'/,
      by: /^$/,
      instead: 'workOf(spec), or reads(spec, part) of src/spec/spec-parts.ts',
    },
    {
      words: /[=!]== ?'LINKS'/,
      by: /^$/,
      instead: 'workOf(spec), or reads(spec, part) of src/spec/spec-parts.ts',
    },
    {
      words: /[=!]== ?JobKind\.\w+/,
      by: /^src\/(cli\/show\/kind-views\.ts|web\/jobs-view\.tsx)$/,
      instead: 'viewOf',
    },
    {
      words: /\bbornReady\b/,
      by: /^src\/(plan\/(plan-kind|blocks|rows|infer)\.ts|native\/gen\/segment\.ts)$/,
      instead: 'Batches.segment',
    },
  ];

/** `path` counts from the root. */
export function kindViolations({ path, text }: Source): readonly Violation[] {
  return askers
    .filter(({ by }) => !by.test(path))
    .flatMap(({ words, instead }) =>
      [...text.matchAll(new RegExp(words.source, 'g'))].map(({ 0: found, index }) => ({
        path,
        line: lineOf(text, index),
        message: `${found}: asks for a kind; ask ${instead}`,
      })),
    );
}
