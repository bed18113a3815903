import { describe, expect, it } from 'vitest';
import { codeOnly, listed, readSources, type Source, type Violation } from './sources.ts';

/**
 * native/core/draw decides bits, and a second compiler (CUDA's) shall compile the same text. Device
 * code knows no arrays of namespaces, no containers, and no function without GNND_HD.
 */

// Vectors of the host's processor over the same generator.
const hostOnly = new Set(['native/core/draw/philox_lanes.h']);

const headers = readSources(/^native\/core\/draw\//).filter(({ path }) => !hostOnly.has(path));

function violations({ path, text }: Source): readonly Violation[] {
  const code = codeOnly(text, 'cc');
  return code.split('\n').flatMap((line, index) => {
    const message = judge(line, text.split('\n')[index] ?? '');
    return message === null ? [] : [{ path, line: index + 1, message }];
  });
}

function judge(line: string, whole: string): string | null {
  const header = /^#include [<"](.*)[>"]/.exec(whole)?.[1];
  if (header !== undefined) {
    const known = /^(cstdint|cmath|core\/base\/hd\.h|core\/draw\/\w+\.h)$/.test(header);
    return known ? null : `includes ${header}`;
  }
  if (/\bstd::(?!(?:sqrt|ceil)\b)/.test(line)) return 'uses the standard library';
  if (/^(inline )?(static )?constexpr [\w:]+ \w+\[/.test(line)) return 'is an array of a namespace';
  // Whatever stands at the margin and has parameters is a function.
  const isFunction = /^(?!static_assert|using|typedef)[A-Za-z_][\w:<>*& ]* \w+\(/.test(line);
  if (isFunction && !line.startsWith('GNND_HD ')) return 'is a function without GNND_HD';
  return null;
}

describe('core/draw', () => {
  it('is text that a compiler of device code takes', () => {
    expect(headers.length).toBeGreaterThanOrEqual(10);
    expect(headers.map(({ path }) => path).filter((path) => !path.endsWith('.h'))).toEqual([]);
    expect(listed(headers.flatMap(violations))).toBe('');
  });

  it.each([
    ['a container', '  std::vector<int> all;', 'standard library'],
    ['a header of ours', '#include "core/base/check.h"', 'includes core/base/check.h'],
    ['an array', 'inline constexpr uint32_t kTable[4] = {1, 2, 3, 4};', 'array'],
    ['a function of the host', 'inline uint32_t Draw(uint32_t word) { return word; }', 'GNND_HD'],
  ])('refuses %s', (_, line, message) => {
    expect(listed(violations({ path: 'native/core/draw/a.h', text: line }))).toContain(message);
  });
});
