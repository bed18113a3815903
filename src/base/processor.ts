import { readFileSync } from 'node:fs';

/** What a processor can do that no addon needs to know. */

/** Flags of /proc/cpuinfo of processors that multiply bfloat16 numbers as such. */
const bfloat16Flags: ReadonlySet<string> = new Set(['avx512_bf16', 'amx_bf16']);

/** Whether the processor that /proc/cpuinfo tells of has instructions for products of bfloat16. */
export function hasBfloat16Products(cpuinfo = cpuinfoText()): boolean {
  const flags = /^flags\s*:(.*)$/m.exec(cpuinfo)?.[1] ?? '';
  return flags.split(' ').some((flag) => bfloat16Flags.has(flag));
}

function cpuinfoText(): string {
  try {
    return readFileSync('/proc/cpuinfo', 'utf8');
  } catch {
    return '';
  }
}
