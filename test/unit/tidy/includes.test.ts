import { describe, expect, it } from 'vitest';
import { coreRanks, includeCycles, includeViolations, trainRanks } from './include-rules.ts';
import { listed, readSources } from './sources.ts';

const files = readSources(/^native\/.*\.(h|cc|cuh?)$/).map(({ path, text }) => ({
  path: path.slice('native/'.length),
  text,
}));

describe('includes of native/', () => {
  it('go down the ranks, and libraries stay with their owner', () => {
    expect(files.length).toBeGreaterThan(100);
    // The binary's main function has no area.
    const judged = files.filter(({ path }) => path !== 'test/main.cc');
    expect(listed(judged.flatMap(includeViolations))).toBe('');
  });

  it.each([
    ['core', coreRanks],
    ['train', trainRanks],
  ])('start from rooms of %s that all have a rank', (area, ranks) => {
    const rooms = new Set(
      files.flatMap(({ path }) => (path.startsWith(`${area}/`) ? [path.split('/')[1]] : [])),
    );
    expect([...rooms].sort()).toEqual(Object.keys(ranks).sort());
  });
});

describe('headers and their sources', () => {
  it('include each other in no circle', () => {
    expect(includeCycles(files)).toEqual([]);
  });

  it('are seen to where they do', () => {
    const texts = {
      'core/graph/a.h': '#pragma once',
      'core/graph/a.cc': '#include "core/graph/a.h"\n#include "core/graph/b.h"',
      'core/graph/b.h': '#include "core/graph/c.h"',
      'core/graph/c.cc': '#include "core/graph/c.h"\n#include "core/graph/a.h"',
      'core/graph/c.h': '#include "core/graph/d.h"',
      'core/graph/d.h': '#pragma once',
    };
    const made = Object.entries(texts).map(([path, text]) => ({ path, text }));
    expect(includeCycles(made)).toEqual(['core/graph/a <-> core/graph/b <-> core/graph/c']);
  });
});

function judge(path: string, ...lines: string[]): string {
  return listed(includeViolations({ path, text: lines.join('\n') }));
}

describe('the include rules', () => {
  it.each([
    ['an upward include', 'core/graph/a.cc', '#include "core/sample/sampler.h"', 'upward'],
    ['a sideways one', 'core/sample/a.h', '#include "core/ledger/segment.h"', 'sideways'],
    ['train from core', 'core/executor/a.cc', '#include "train/work/torch_work.h"', 'upward'],
    ['the border from train', 'train/work/a.cc', '#include "node/convert.h"', 'upward'],
    ['a relative path', 'core/executor/a.cc', '#include "committer.h"', 'from native/'],
    ['an unranked room', 'core/new/a.cc', '#include "core/base/status.h"', 'has no rank'],
    ['mapping by hand', 'core/executor/a.cc', '#include <sys/mman.h>', 'memory mappings'],
    ['torch in core', 'core/executor/a.cc', '#include <torch/torch.h>', 'libtorch'],
    ['ATen at the border', 'node/train/a.cc', '#include <ATen/ops/mm.h>', 'libtorch'],
    ['Node-API in core', 'core/base/a.h', '#include <napi.h>', 'Node-API'],
    ['Node-API in train', 'train/a.h', '#include <node_api.h>', 'Node-API'],
    ['CUDA in train', 'train/a.cc', '#include <cuda_runtime.h>', 'CUDA'],
    ['train in a test of core', 'test/core/a.cc', '#include "train/adam.h"', 'upward'],
    ['a test from a kernel', 'cuda/a.cu', '#include "test/cuda/orders.h"', 'upward'],
    ['a spaced directive', 'core/base/a.cc', '  #  include "core/executor/committer.h"', 'upward'],
  ])('refuse %s', (_, path, line, message) => {
    expect(judge(path, '#pragma once', line)).toContain(message);
  });

  it('take no include from a comment', () => {
    expect(judge('core/base/a.cc', '// #include <torch/torch.h>')).toBe('');
  });

  it('accept what is meant', () => {
    const run = ['batch/record.h', 'ledger/segment.h', 'base/status.h', 'executor/committer.h'];
    expect(judge('core/executor/a.cc', ...run.map((name) => `#include "core/${name}"`))).toBe('');
    const train = ['#include <ATen/ops/mm.h>', '#include "core/executor/executor.h"'];
    expect(judge('train/a.cc', ...train)).toBe('');
    expect(judge('test/core/executor/a.cc', '#include "job_harness.h"')).toBe('');
  });
});
