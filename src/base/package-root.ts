import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The clone or the installed package: two levels up both from src/base and from dist/base. */
export const packageRoot = fileURLToPath(new URL('../..', import.meta.url));

/** An installed package has no sources. */
export const isClone = existsSync(join(packageRoot, 'src', 'main.ts'));

/** In a wheel this is a Python package, whose libraries are those of the environment around it. */
export const isWheel = existsSync(join(packageRoot, '__init__.py'));

/** Gets what is missing: pip of the environment, or deploy/setup.mjs by a script's name or ours. */
export const setupCommand = isWheel
  ? 'pip uninstall gnnd && pip install gnnd-*.whl'
  : isClone
    ? 'npm run setup'
    : 'gnnd setup';
