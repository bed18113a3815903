import type { PluginFile } from '../job-spec.ts';
import { show } from '../spec-checker.ts';
import type { PluginKind, Rule, RuleFacts } from './rule.ts';

/** Files of the user's are frozen by their digests. */
export const pluginFilesRule: Rule = ({ model, sampling }, facts) => {
  if (sampling.algorithm === 'KHOP_PLUGIN') {
    const owner = 'algorithm KHOP_PLUGIN';
    const at = 'spec.sampling.plugin';
    Object.assign(
      sampling.plugin,
      frozenFile(sampling.plugin, { at, kind: 'SAMPLER', owner }, facts),
    );
  }
  if (model.type === 'TORCHSCRIPT') {
    const owner = 'type TORCHSCRIPT';
    const at = 'spec.model.script';
    Object.assign(model.script, frozenFile(model.script, { at, kind: 'MODEL', owner }, facts));
  }
};

interface FileUse {
  /** Path of the message that holds the file. */
  readonly at: string;
  readonly kind: PluginKind;
  /** The choice that needs it. */
  readonly owner: string;
}

function frozenFile(
  { path, sha256 }: PluginFile,
  { at, kind, owner }: FileUse,
  { check, context }: RuleFacts,
): PluginFile {
  if (path === '') {
    check.violate(`${at}.path`, `required for ${owner}: a file in the daemon's plugins_dir`);
    return { path, sha256 };
  }
  const found = context.pluginFile(path, kind);
  if ('problem' in found) {
    check.violate(`${at}.path`, `${show(path)}: ${found.problem}`);
    return { path, sha256 };
  }
  if (sha256 !== '' && sha256.toLowerCase() !== found.sha256) {
    check.violate(`${at}.sha256`, `${show(sha256)}: the file has ${found.sha256}`);
  }
  return { path, sha256: found.sha256 };
}
