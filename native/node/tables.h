#pragma once

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "core/executor/sampler_loop.h"
#include "core/graph/dataset.h"
#include "core/ledger/segment.h"
#include "core/model/model_spec.h"
#include "node/codec.h"
#include "node/job_options.h"

// The structs that more than one binding has, with their tables.

namespace gnnd::node {

// ---- datasets -------------------------------------------------------------------------------

template <>
inline constexpr auto kNames<FeatureType> = NamesOf<FeatureType>(
    "FeatureDtype", {{"float32", FeatureType::kFloat32}, {"float16", FeatureType::kFloat16}});

template <>
inline constexpr auto kTable<DatasetCounts> = StructOf(
    "DatasetCounts", Field{"numNodes", &DatasetCounts::num_nodes},
    Field{"numEdges", &DatasetCounts::num_edges, "CSC entries."},
    Field{"numFeatures", &DatasetCounts::num_features},
    Field{"numClasses", &DatasetCounts::num_classes}, Field{"train", &DatasetCounts::train},
    Field{"val", &DatasetCounts::val}, Field{"test", &DatasetCounts::test},
    Field{"featureDtype", &DatasetCounts::feature_type,
          "Of features.npy; derived features are float32."});

struct DatasetLocation {
  std::string folder;
  DatasetCounts counts;
  std::string features_path;
};

template <>
inline constexpr auto kTable<DatasetLocation> = StructOf(
    "DatasetLocation", Field{"folder", &DatasetLocation::folder},
    Field{"counts", &DatasetLocation::counts},
    Field{"featuresPath", &DatasetLocation::features_path, "Empty: features.npy of the folder."});

// ---- options of jobs, which job_options.h reads -----------------------------------------------

template <>
struct Codec<SamplingOptions> {
  static std::string Type() { return "SamplingOptions"; }
  static SamplingOptions Read(const Napi::Value& value, const std::string& path) {
    return SamplingOf(Fields(value, path));
  }
};

// What ModelOptions says: one of our models, or a user's.
struct ModelOptions {
  ModelSpec spec;
  ScriptSource script;
};

template <>
struct Codec<ModelOptions> {
  static std::string Type() { return "ModelOptions"; }
  static ModelOptions Read(const Napi::Value& value, const std::string& path) {
    const Fields fields(value, path);
    return {ModelOf(fields), ScriptOf(fields)};
  }
};

// ---- models ---------------------------------------------------------------------------------

template <>
inline constexpr auto kTable<ParameterTensor> =
    StructOf("ParameterTensor", Field{"name", &ParameterTensor::name},
             Field{"shape", &ParameterTensor::shape, "As PyTorch has it."},
             Field{"offset", &ParameterTensor::offset, "In floats."});

template <>
inline constexpr auto kTable<ParameterManifest> = StructOf(
    "ModelManifest", Field{"tensors", &ParameterManifest::tensors},
    Field{"widths", &ParameterManifest::widths, "Of a TORCHSCRIPT: columns that each layer gives."},
    Field{"numFloats", &ParameterManifest::num_floats,
          "Length of the parameter vector, padding included."});

// ---- executors ------------------------------------------------------------------------------

template <>
inline constexpr auto kTable<ExecutorId> = StructOf("ExecutorId", Field{"row", &ExecutorId::row},
                                                    Field{"incarnation", &ExecutorId::incarnation});

struct CacheOptions {
  std::string order_path;
  uint64_t rows = 0;
  bool features_on_disk = false;
};

template <>
inline constexpr auto kTable<CacheOptions> = StructOf(
    "CacheOptions",
    Field{"orderPath", &CacheOptions::order_path, "Of `cacheRank`; empty: nothing is cached."},
    Field{"rows", &CacheOptions::rows,
          "For a Sampler those of the largest cache, for a Trainer those of its own."},
    Field{"featuresOnDisk", &CacheOptions::features_on_disk,
          "The feature file is larger than the memory it may take."});

// What both roles need to start.
struct ExecutorOptions {
  DatasetLocation dataset;
  SamplingOptions sampling;
  Bits64 random_seed;
  int segment_fd = -1;
  int topology_fd = -1;
  ExecutorId executor;
  CacheOptions cache;
};

template <>
inline constexpr auto kTable<ExecutorOptions> = StructOf(
    "ExecutorOptions", Field{"dataset", &ExecutorOptions::dataset},
    Field{"sampling", &ExecutorOptions::sampling},
    Field{"randomSeed", &ExecutorOptions::random_seed},
    Field{"segmentFd", &ExecutorOptions::segment_fd},
    Field{"topologyFd", &ExecutorOptions::topology_fd},
    Field{"executor", &ExecutorOptions::executor}, Field{"cache", &ExecutorOptions::cache});

template <>
inline constexpr auto kNames<LoopEnd> =
    NamesOf<LoopEnd>("LoopEnd", {{"COMPLETE", LoopEnd::kComplete}, {"STOPPED", LoopEnd::kStopped}});

}  // namespace gnnd::node
