import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The clone or the installed package: two levels up both from src/base and from dist/base. */
export const packageRoot = fileURLToPath(new URL('../..', import.meta.url));

/** An installed package has no sources. */
export const isClone = existsSync(join(packageRoot, 'src', 'main.ts'));

/** Gets what is missing (deploy/setup.mjs); an installed package has no scripts to run by name. */
export const setupCommand = isClone ? 'npm run setup' : 'gnnd setup';
