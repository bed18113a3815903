/** Arrays as the daemon streams them: .npy files in memory, of the types that predictions have. */

export interface NumberArray {
  readonly shape: readonly number[];
  /** Row after row. */
  readonly values: ArrayLike<number>;
}

const magicBytes = 8;
const headBytes = magicBytes + 2;

/** REQUIRES: a .npy of version 1.0, little-endian, of int64, int32, uint8 or float32. */
export function arrayOf(file: Uint8Array): NumberArray {
  const view = new DataView(file.buffer, file.byteOffset, file.byteLength);
  const dataAt = headBytes + view.getUint16(magicBytes, true);
  const header = new TextDecoder('latin1').decode(file.subarray(headBytes, dataAt));
  const [, type = '', axes = ''] = /'descr': '(...)'.*'shape': \(([^)]*)\)/.exec(header) ?? [];
  const shape = axes.split(',').flatMap((axis) => (axis.trim() === '' ? [] : [Number(axis)]));
  // Copied: elements lie at a multiple of their size then, and bytes may share their memory.
  const data = Uint8Array.from(file.subarray(dataAt)).buffer;
  return { shape, values: valuesOf(type, data) };
}

function valuesOf(type: string, data: ArrayBuffer): ArrayLike<number> {
  switch (type) {
    case '<i8':
      return Float64Array.from(new BigInt64Array(data), Number);
    case '<i4':
      return new Int32Array(data);
    case '|u1':
      return new Uint8Array(data);
    case '<f4':
      return new Float32Array(data);
    default:
      throw new Error(`an array of type '${type}', expected '<i8', '<i4', '|u1' or '<f4'`);
  }
}
