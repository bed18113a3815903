#pragma once

#include "core/run/sampler_loop.h"
#include "core/segment/segment.h"
#include "node/job_options.h"

namespace gnnd::node {

// ExecutorOptions of contract.ts: what both roles need to start.
struct ExecutorOptions {
  DatasetLocation dataset;
  SamplingOptions sampling;
  uint64_t random_seed = 0;
  int segment_fd = -1;
  int topology_fd = -1;
  ExecutorId executor;
};

inline ExecutorOptions ExecutorOptionsOf(const Fields& fields) {
  ExecutorOptions options;
  options.dataset = LocationOf(fields.Object("dataset"));
  options.sampling = SamplingOf(fields.Object("sampling"));
  options.random_seed = fields.Bits64("randomSeed");
  options.segment_fd = static_cast<int>(fields.Uint32("segmentFd"));
  options.topology_fd = static_cast<int>(fields.Uint32("topologyFd"));
  const Fields executor = fields.Object("executor");
  options.executor.row = executor.Uint32("row");
  options.executor.incarnation = executor.Uint32("incarnation");
  return options;
}

inline Napi::Value LoopEndOf(Napi::Env env, LoopEnd& end) {
  return Napi::String::New(env, end == LoopEnd::kComplete ? "COMPLETE" : "STOPPED");
}

}  // namespace gnnd::node
