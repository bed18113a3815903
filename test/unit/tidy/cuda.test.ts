import { describe, expect, it } from 'vitest';
import { codeOnly, listed, readSources, type Source, type Violation } from './sources.ts';

/**
 * Kernels keep to the language of native/cuda/dev.h, which has two meanings that agree: nvcc's and
 * that of the shim which runs them in tests. Whatever is not in it would be tested as something
 * else than what runs.
 */

const kernels = readSources(/^native\/cuda\/.*\.cuh?$/);

const rules: readonly { readonly found: RegExp; readonly message: string }[] = [
  { found: /\b(threadIdx|blockIdx|blockDim|gridDim|warpSize)\b/, message: 'names of the device' },
  { found: /<<</, message: 'a launch beside Launch()' },
  { found: /\b__\w+/, message: 'an intrinsic or attribute of one compiler' },
  { found: /\b(asm|printf|malloc|free|new|delete|throw|try|goto)\b/, message: 'not in it' },
  { found: /\bstatic (?!constexpr\b)/, message: 'a static' },
  { found: /\b(cuda|cu|cub|cg)(::|[A-Z])\w*/, message: "the device's library" },
  { found: /\batomic[A-Z]\w*/, message: 'an atomic function beside dev.h' },
  { found: /\bstd::(?!(sqrt|ceil|bit_cast)\b)/, message: 'library' },
  { found: /^\s*#\s*pragma(?!\s+once)/, message: 'GNND_UNROLL stands for it' },
  {
    found: /(?<!std::)\bsqrtf?\(|\b(expf?|logf?|powf?|fma\w?|rsqrtf?|tanhf?)\(/,
    message: 'other bits elsewhere',
  },
];
// Headers that decide bits, and those of the structs of core's operations.
const includes = new RegExp(
  `^(cstdint|cuda/\\w+\\.(h|cuh)|core/draw/\\w+\\.h|core/base/(bfloat16|half)\\.h|${'core/kernels/(exp|update|spmm|dropout|attention|row_tiers)\\.h'})$`,
);

function violations({ path, text }: Source): readonly Violation[] {
  const lines = text.split('\n');
  return codeOnly(text, 'cc')
    .split('\n')
    .flatMap((code, index) => {
      const header = /^#include [<"](.*)[>"]/.exec(lines[index] ?? '')?.[1];
      const messages = rules.filter(({ found }) => found.test(code)).map(({ message }) => message);
      if (header !== undefined && !includes.test(header)) messages.push(`includes ${header}`);
      return messages.map((message) => ({ path, line: index + 1, message }));
    });
}

describe('kernels', () => {
  it('keep to the language of dev.h', () => {
    expect(listed(kernels.flatMap(violations))).toBe('');
  });

  it.each([
    ['an index of the device', 'const int i = threadIdx.x;', 'names of the device'],
    ['a launch', 'Kernel<<<1, 32>>>(n);', 'a launch'],
    ['an intrinsic', 'const float x = __ldg(from);', 'an intrinsic'],
    ['an attribute', '__device__ int Two() { return 2; }', 'an intrinsic or attribute'],
    ['inline machine code', 'asm("trap;");', 'not in it'],
    ['a print', 'printf("%d", n);', 'not in it'],
    ['a runtime call', 'cudaMalloc(&to, n);', "the device's library"],
    ['a container', 'std::vector<int> all;', 'library'],
    ['a plain atomic', 'atomicAdd(to, 1);', 'an atomic function'],
    ['an exponential of the device', 'const float y = expf(x);', 'other bits'],
    ['a root of unknown type', 'const float y = sqrt(x);', 'other bits'],
    ['a pragma', '#pragma unroll 4', 'GNND_UNROLL'],
    ['a header of the host', '#include "core/base/check.h"', 'includes core/base/check.h'],
  ])('may not have %s', (_, line, message) => {
    expect(listed(violations({ path: 'native/cuda/a.cu', text: line }))).toContain(message);
  });

  it('may have what they need', () => {
    const text = [
      '#include "cuda/dev.h"',
      'GNND_KERNEL Add(uint32_t* to) {',
      '  AtomicAdd(to, static_cast<uint32_t>(std::sqrt(4.0F)));',
    ];
    expect(listed(violations({ path: 'native/cuda/a.cu', text: text.join('\n') }))).toBe('');
  });
});
