#pragma once

#include <cstdint>

#include "core/graph/dataset.h"
#include "core/model/model_spec.h"

// What the parts of a job take of memory, by its shape alone: before there is a file, a process or
// a trial. Each number is said here once, from the constants of whoever allocates.

namespace gnnd {

struct JobMemoryShape {
  DatasetCounts counts;
  ModelSpec model;
  Precision precision = Precision::kFloat32;
  uint64_t batch_size = 1;
  uint64_t parameter_floats = 0;
  uint64_t slot_bytes = 0;       // of the largest record; 0 where there are none
  uint64_t row_value_bytes = 4;  // of a value of a propagation's rows, as they are stored
  bool alias = false;            // neighbours are drawn by edge weight
};

// Bytes, each at most.
struct JobMemory {
  uint64_t topology_bytes = 0;
  // Of a device's memory, for its Sampler.
  uint64_t sampler_device_bytes = 0;
  // Of a hidden row as history keeps it.
  uint64_t history_row_bytes = 0;
  // What is on its way to a device in an exact evaluation, and its numbering.
  uint64_t evaluation_part_bytes = 0;
  // Of models over rows. On a Trainer: what it computes with, in the host's memory; the same in a
  // device's, beside rows that lie there; batches that are read ahead from disk; the inputs of a
  // chunk of an evaluation.
  uint64_t row_work_bytes = 0;
  uint64_t row_device_bytes = 0;
  uint64_t row_staged_bytes = 0;
  uint64_t row_chunk_bytes = 0;
};

JobMemory MemoryOf(const JobMemoryShape& shape);

// A topology in memory: 64-bit row starts, 32-bit neighbours, and with `alias` 8 bytes an edge
// more.
uint64_t TopologyBytes(const DatasetCounts& counts, bool alias);

// A hidden row as history keeps it: complete, before dropout.
uint32_t HistoryRowBytes(const ModelSpec& spec, Precision precision);

}  // namespace gnnd
