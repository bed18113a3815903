import type { PluginFile } from './job-spec.ts';
import { type SpecChecker, show } from './spec-checker.ts';

/** As a user sent it. */
interface PluginFileInput {
  readonly path?: string | undefined;
  readonly sha256?: string | undefined;
}

/** What a file is loaded as: a sampler is a shared object, a model a TorchScript module. */
export type PluginKind = 'SAMPLER' | 'MODEL';

/** Looks at a path: the file's digest, or why a job may not have it. */
export type PluginLookup = (
  path: string,
  kind: PluginKind,
) => { readonly sha256: string } | { readonly problem: string };

/** `at` is the path of the message that holds the file, `owner` the choice that needs it. */
export function resolvePluginFile(
  check: SpecChecker,
  at: string,
  given: PluginFileInput | undefined,
  {
    lookup,
    kind,
    owner,
  }: { readonly lookup: PluginLookup; readonly kind: PluginKind; readonly owner: string },
): PluginFile {
  const { path = '', sha256 = '' } = given ?? {};
  if (path === '') {
    check.violate(`${at}.path`, `required for ${owner}: a file in the daemon's plugins_dir`);
    return { path, sha256 };
  }
  const found = lookup(path, kind);
  if ('problem' in found) {
    check.violate(`${at}.path`, `${show(path)}: ${found.problem}`);
    return { path, sha256 };
  }
  if (sha256 !== '' && sha256.toLowerCase() !== found.sha256) {
    check.violate(`${at}.sha256`, `${show(sha256)}: the file has ${found.sha256}`);
  }
  return { path, sha256: found.sha256 };
}

/** Fields that only `owner` reads: unset, or as a resolved spec says that. */
export function unusedPluginFile(
  check: SpecChecker,
  at: string,
  given: PluginFileInput | undefined,
  owner: string,
): PluginFile {
  unusedText(check, `${at}.path`, given?.path, owner);
  unusedText(check, `${at}.sha256`, given?.sha256, owner);
  return { path: '', sha256: '' };
}

export function unusedText(
  check: SpecChecker,
  path: string,
  value: string | undefined,
  owner: string,
): void {
  if (value !== undefined && value !== '') check.violate(path, `${show(value)}: only for ${owner}`);
}
