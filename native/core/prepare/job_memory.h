#pragma once

#include <cstdint>

#include "core/graph/dataset.h"
#include "core/graph/schema.h"
#include "core/model/model_spec.h"

// The memory of a job's parts, computed from its shape alone, before any file, process or trial
// exists. Each number is stated here once, from the constants of the code that allocates.

namespace gnnd {

struct JobMemoryShape {
  DatasetCounts counts;
  ModelSpec model;
  Precision precision = Precision::kFloat32;
  uint64_t batch_size = 1;
  uint64_t parameter_floats = 0;
  uint64_t slot_bytes = 0;       // size of the largest record; 0 if there are no slots
  uint64_t row_value_bytes = 4;  // bytes of one stored value in a propagation's rows
  bool alias = false;            // neighbours are drawn by edge weight
};

// Upper bounds, in bytes.
struct JobMemory {
  uint64_t topology_bytes = 0;
  // Device memory of a Sampler.
  uint64_t sampler_device_bytes = 0;
  // One hidden row in a history.
  uint64_t history_row_bytes = 0;
  // One part of an exact evaluation on its way to a device, with its numbering.
  uint64_t evaluation_part_bytes = 0;
  // For models over rows, on one Trainer: host memory for computing; device memory for computing,
  // beside rows that lie there; batches read ahead from disk; inputs of a chunk of an evaluation.
  uint64_t row_work_bytes = 0;
  uint64_t row_device_bytes = 0;
  uint64_t row_staged_bytes = 0;
  uint64_t row_chunk_bytes = 0;
};

JobMemory MemoryOf(const JobMemoryShape& shape);

// Bytes of a topology in memory: 64-bit row starts, 32-bit neighbours, and 8 more bytes an edge
// with `alias`.
uint64_t TopologyBytes(const DatasetCounts& counts, bool alias);
// That of several relations, which have no alias tables.
uint64_t TopologyBytes(const Schema& schema);

// Bytes of a hidden row in a history, which keeps it complete and before dropout.
uint32_t HistoryRowBytes(const ModelSpec& spec, Precision precision);

}  // namespace gnnd
