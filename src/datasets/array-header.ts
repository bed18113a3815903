import type { ArrayRole } from './array-set.ts';
import { type NpySource, type NpyType, npyIntegers } from './npy.ts';
import { badFile } from './problems.ts';

/** What an array may be by its header, for what it is to a dataset. */

export const floats: readonly NpyType[] = ['float16', 'float32', 'float64'];

/** Throws ImportFailure. */
export function checkHeader(role: ArrayRole, source: NpySource): void {
  const { type, shape } = source.header;
  const isFloat = floats.includes(type);
  const refuse = (expected: string) => {
    throw badFile(source.path, `has dtype ${type}, expected ${expected}`);
  };
  const isSplit = role === 'train' || role === 'val' || role === 'test';
  if (role === 'edge_weights') {
    if (!isFloat) refuse(floats.join(', '));
  } else if (isSplit) {
    if (isFloat) refuse('node ids (integers) or a mask (bool)');
  } else if (!mayBeAnything(role) && (isFloat || type === 'bool')) refuse(npyIntegers.join(', '));
  const expected = shapeProblem(role, shape);
  if (expected === null) return;
  throw badFile(source.path, `has shape (${shape.join(', ')}), expected ${expected}`);
}

function mayBeAnything(role: ArrayRole): boolean {
  return role === 'features' || role === 'labels';
}

/** What was expected of the shape; null: it is right. */
function shapeProblem(role: ArrayRole, shape: readonly number[]): string | null {
  const [rows = 0, columns = 0] = shape;
  const axes = shape.length;
  switch (role) {
    case 'features':
      return axes === 2 ? null : '[nodes, features]';
    case 'edge_index':
      if (axes === 2 && rows === 2) return null;
      return columns === 2 ? '[2, edges]: store its transpose, edge_index.T.copy()' : '[2, edges]';
    case 'labels':
      return axes === 1 || (axes === 2 && columns > 0) ? null : '[nodes] or [nodes, labels]';
    case 'train':
    case 'val':
    case 'test':
      return axes === 1 || (axes === 2 && columns > 0) ? null : 'one axis, or masks in columns';
    default:
      return axes === 1 || (axes === 2 && columns === 1) ? null : 'one axis';
  }
}
