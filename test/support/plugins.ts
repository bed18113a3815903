import type { PluginLookup } from '../../src/spec/rules/rule.ts';

/** A host that lets jobs load nothing. */
export const noPlugins: PluginLookup = () => ({ problem: 'no plug-ins here' });
