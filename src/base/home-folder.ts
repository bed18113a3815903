import { homedir } from 'node:os';

/**
 * The folder of who runs this. A container's user may have none: then the root, below which nothing
 * is written unless somebody says so by a flag. (Node throws where neither HOME nor /etc/passwd
 * knows.)
 */
export function homeFolder(): string {
  try {
    return homedir();
  } catch {
    return '/';
  }
}
