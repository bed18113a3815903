import type { NpyHeader, NpySource, NpyType, NpyValues } from './npy.ts';

/** Arrays that are no .npy files, as importers read those: what a table or several files make. */

/** `blocks` gives the elements once for each time that somebody reads them. */
export function givenSource(
  path: string,
  header: NpyHeader,
  blocks: () => AsyncGenerator<NpyValues>,
): NpySource {
  return { path, header, place: null, blocks, close: async () => undefined };
}

/** An array in memory: a vector. */
export function vectorSource(path: string, type: NpyType, values: NpyValues): NpySource {
  return givenSource(path, { type, shape: [values.length] }, async function* () {
    yield values;
  });
}
