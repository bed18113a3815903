import { converterOf, type OnOutOfRange } from './convert-array.ts';
import type { NpySource, NpyValues } from './npy.ts';

/** Elements of an array by so many as somebody wants, as uint32 or float32. */
export class ElementReader<T extends 'uint32' | 'float32' = 'uint32' | 'float32'> {
  readonly #type: T;
  readonly #blocks: AsyncGenerator<ArrayOf<T>>;
  /** What was read and not taken. */
  #rest: ArrayOf<T>;

  /** `see` is told of each block as it was given and as it is read. */
  constructor(
    source: NpySource,
    type: T,
    onOutOfRange: OnOutOfRange,
    see: (given: NpyValues, read: ArrayOf<T>) => void = () => undefined,
  ) {
    const convert = converterOf(source.header.type, type);
    const blocks = source.blocks();
    this.#type = type;
    this.#rest = emptyOf(type, 0);
    this.#blocks = (async function* () {
      // A block is valid until the next one only.
      for await (const block of blocks) {
        const read = convert(block, onOutOfRange).slice() as ArrayOf<T>;
        see(block, read);
        yield read;
      }
    })();
  }

  /** REQUIRES: there are so many. */
  async take(count: number): Promise<ArrayOf<T>> {
    const taken = emptyOf(this.#type, count);
    await this.#each(count, (part, at) => taken.set(part, at));
    return taken;
  }

  async skip(count: number): Promise<void> {
    await this.#each(count, () => undefined);
  }

  async #each(count: number, see: (part: ArrayOf<T>, at: number) => void): Promise<void> {
    for (let at = 0; at < count; ) {
      if (this.#rest.length === 0) {
        const next = await this.#blocks.next();
        if (next.done === true) throw new Error(`an array ended ${count - at} elements early`);
        this.#rest = next.value;
      }
      const part = this.#rest.subarray(0, count - at) as ArrayOf<T>;
      see(part, at);
      at += part.length;
      this.#rest = this.#rest.subarray(part.length) as ArrayOf<T>;
    }
  }
}

type ArrayOf<T extends 'uint32' | 'float32'> = T extends 'uint32' ? Uint32Array : Float32Array;

function emptyOf<T extends 'uint32' | 'float32'>(type: T, length: number): ArrayOf<T> {
  const made = type === 'uint32' ? new Uint32Array(length) : new Float32Array(length);
  return made as ArrayOf<T>;
}
