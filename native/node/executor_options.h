#pragma once

#include <string>

#include "core/run/sampler_loop.h"
#include "core/segment/segment.h"
#include "node/job_options.h"

namespace gnnd::node {

// CacheOptions of contract.ts.
struct CacheOptions {
  std::string order_path;  // empty: nothing is cached
  uint64_t rows = 0;       // Sampler: of the largest cache; Trainer: of its own
  bool features_on_disk = false;
};

// ExecutorOptions of contract.ts: what both roles need to start.
struct ExecutorOptions {
  DatasetLocation dataset;
  SamplingOptions sampling;
  uint64_t random_seed = 0;
  int segment_fd = -1;
  int topology_fd = -1;
  ExecutorId executor;
  CacheOptions cache;
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
  const Fields cache = fields.Object("cache");
  options.cache.order_path = cache.String("orderPath");
  options.cache.rows = cache.Uint64("rows");
  options.cache.features_on_disk = cache.Bool("featuresOnDisk");
  return options;
}

inline Napi::Value LoopEndOf(Napi::Env env, LoopEnd& end) {
  return Napi::String::New(env, end == LoopEnd::kComplete ? "COMPLETE" : "STOPPED");
}

}  // namespace gnnd::node
