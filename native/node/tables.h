#pragma once

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "core/executor/sampler_loop.h"
#include "core/feature/row_placement.h"
#include "core/graph/dataset.h"
#include "core/graph/schema.h"
#include "core/ledger/segment.h"
#include "core/metric/metric.h"
#include "core/model/model_spec.h"
#include "node/codec.h"
#include "node/gen/job_spec.h"

// Structs that several bindings use, with their tables.

namespace gnnd::node {

// ---- datasets -------------------------------------------------------------------------------

template <>
inline constexpr auto kNames<FeatureType> = NamesOf<FeatureType>(
    "FeatureDtype", {{"float32", FeatureType::kFloat32}, {"float16", FeatureType::kFloat16}});

using DatasetTask = gnnd::Task;  // here, Task means work for a thread

template <>
inline constexpr auto kNames<DatasetTask> =
    NamesOf<DatasetTask>("DatasetTask", {{"CLASSIFICATION", DatasetTask::kClassification},
                                         {"MULTI_LABEL", DatasetTask::kMultiLabel},
                                         {"REGRESSION", DatasetTask::kRegression}});

template <>
inline constexpr auto kTable<DatasetCounts> =
    StructOf("DatasetCounts", Field{"numNodes", &DatasetCounts::num_nodes},
             Field{"numEdges", &DatasetCounts::num_edges, "CSC entries."},
             Field{"numFeatures", &DatasetCounts::num_features},
             Field{"numClasses", &DatasetCounts::num_classes,
                   "Classes; labels that a node may have; targets that it has."},
             Field{"train", &DatasetCounts::train}, Field{"val", &DatasetCounts::val},
             Field{"test", &DatasetCounts::test},
             Field{"featureDtype", &DatasetCounts::feature_type,
                   "Of features.npy; derived features are float32."},
             Field{"task", &DatasetCounts::task});

template <>
inline constexpr auto kTable<NodeType> = StructOf(
    "NodeTypeCounts", "A type of nodes; counts as those of a graph of one type.",
    Field{"name", &NodeType::name}, Field{"numNodes", &NodeType::num_nodes},
    Field{"numFeatures", &NodeType::num_features, "0: it has none."},
    Field{"featureDtype", &NodeType::feature_type}, Field{"labelled", &NodeType::labelled},
    Field{"task", &NodeType::task}, Field{"numClasses", &NodeType::num_classes},
    Field{"train", &NodeType::train}, Field{"val", &NodeType::val}, Field{"test", &NodeType::test});

template <>
inline constexpr auto kTable<Relation> =
    StructOf("RelationCounts", "Edges from nodes of one type to nodes of one.",
             Field{"source", &Relation::source, "Index of a type."}, Field{"name", &Relation::name},
             Field{"destination", &Relation::destination, "Index of a type."},
             Field{"numEdges", &Relation::num_edges});

template <>
inline constexpr auto kTable<Schema> =
    StructOf("GraphSchema", Field{"types", &Schema::types}, Field{"relations", &Schema::relations});

struct DatasetLocation {
  std::string folder;
  DatasetCounts counts;
  std::string features_path;
  Schema schema;
  std::vector<std::string> type_rows;
};

template <>
inline constexpr auto kTable<DatasetLocation> = StructOf(
    "DatasetLocation", Field{"folder", &DatasetLocation::folder},
    Field{"counts", &DatasetLocation::counts},
    Field{"featuresPath", &DatasetLocation::features_path, "Empty: features.npy of the folder."},
    Field{"schema", &DatasetLocation::schema,
          "Of a job over several types: those that it takes, its own type first, whose nodes and "
          "splits `counts` has. Without types: a graph of one."},
    Field{"typeRows", &DatasetLocation::type_rows,
          "The file of each type's input rows; empty: features.npy of its folder."});

template <>
inline constexpr auto kNames<Metric> = NamesOf<Metric>("DecidingMetric", kMetricNames);

// ---- options of jobs --------------------------------------------------------------------------

template <>
inline constexpr auto kNames<EdgeWeights> =
    NamesOf<EdgeWeights>("EdgeWeights", {{"NONE", EdgeWeights::kNone},
                                         {"GCN", EdgeWeights::kGcn},
                                         {"VISITS", EdgeWeights::kVisits},
                                         {"INVERSE", EdgeWeights::kInverse},
                                         {"GIVEN", EdgeWeights::kGiven},
                                         {"SHARES", EdgeWeights::kShares}});

template <>
inline constexpr auto kTable<LinkOptions> = StructOf(
    "LinkOptions", "Batches of links; with a count of 0 their items are nodes.",
    Field{"count", &LinkOptions::count, "Of links_train.npy in the dataset's folder."},
    Field{"method", &LinkOptions::method},
    Field{"negatives", &LinkOptions::negatives, "Of each pair, unless in-batch."},
    Field{"known", &LinkOptions::known}, Field{"exclude", &LinkOptions::exclude},
    Field{"symmetric", &LinkOptions::symmetric, "The graph stores each edge in both directions."},
    Field{"given", &LinkOptions::given, "A list of the dataset's own, which need not be edges."});

template <>
inline constexpr auto kTable<SamplingOptions> =
    Extending(kSamplingSpec, "SamplingOptions", Field{"batchSize", &SamplingOptions::batch_size},
              Field{"edgeWeights", &SamplingOptions::weights, "Those that records carry."},
              Field{"relationFanouts", &SamplingOptions::relation_fanouts,
                    "Of each relation, in place of fanouts; none: fanouts for all."},
              Field{"hotRanks", &SamplingOptions::hot_ranks, "Records have room for hot ranks."},
              Field{"links", &SamplingOptions::links});

template <>
inline constexpr auto kTable<ModelGraph::Type> =
    StructOf("ModelNodeType", Field{"name", &ModelGraph::Type::name},
             Field{"inDim", &ModelGraph::Type::in_dim, "Columns of its input rows."});

template <>
inline constexpr auto kTable<ModelGraph::Relation> =
    StructOf("ModelRelation", Field{"source", &ModelGraph::Relation::source, "Index of a type."},
             Field{"name", &ModelGraph::Relation::name},
             Field{"destination", &ModelGraph::Relation::destination, "Index of a type."});

template <>
inline constexpr auto kTable<ModelGraph> =
    StructOf("ModelGraph", "Type 0 is that of the nodes whose rows the model gives.",
             Field{"types", &ModelGraph::types}, Field{"relations", &ModelGraph::relations});

template <>
inline constexpr auto kTable<ModelOptions> =
    Extending(kModelSpec, "ModelOptions", Field{"inDim", &ModelOptions::in_dim},
              Field{"outDim", &ModelOptions::out_dim},
              Field{"head", &ModelOptions::head, "Over pairs of rows; null: nodes are learnt."},
              Field{"headOutputs", &ModelOptions::head_outputs, "Of each pair."},
              Field{"numOperators", &ModelOptions::num_operators, "Of rows; else 0."},
              Field{"numHops", &ModelOptions::num_hops, "Of rows; else 0."},
              Field{"graph", &ModelOptions::graph, "Of models over relations."});

inline SampleLimits LimitsOf(const DatasetCounts& counts, const SamplingOptions& sampling) {
  SampleLimits limits = gnnd::LimitsOf(static_cast<uint32_t>(counts.num_nodes), counts.num_edges,
                                       sampling.batch_size, sampling, sampling.links);
  limits.hot_ranks = sampling.hot_ranks;
  return limits;
}

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

template <>
inline constexpr auto kTable<HistoryConfig> =
    StructOf("HistoryConfig", "Of stored embeddings (core/history/job_history.h).",
             Field{"bytes", &HistoryConfig::bytes, "Of embeddings; 0: there is none."},
             Field{"staleVersions", &HistoryConfig::t_stale, "t_stale."},
             Field{"startVersion", &HistoryConfig::start_version},
             Field{"rowBytes", &HistoryConfig::row_bytes, "Of an embedding."},
             Field{"levels", &HistoryConfig::levels, "How many are kept."},
             Field{"numNodes", &HistoryConfig::num_nodes},
             Field{"featureBytes", &HistoryConfig::feature_bytes, "Of a cached feature row."},
             Field{"cacheRows", &HistoryConfig::cache_rows,
                   "Feature rows in the same memory, as many as embeddings leave room for."});

template <>
inline constexpr auto kTable<RowPlacement::Place> =
    StructOf("RowPlace", Field{"device", &RowPlacement::Place::device, "2^32 - 1: the host."},
             Field{"row", &RowPlacement::Place::row, "Of the first rank that is dealt to it."});

template <>
inline constexpr auto kTable<RowPlacement::Line> =
    StructOf("RowLine", "Ranks from `from` on and below `to`, dealt in rotation.",
             Field{"from", &RowPlacement::Line::from}, Field{"to", &RowPlacement::Line::to},
             Field{"places", &RowPlacement::Line::places});

template <>
inline constexpr auto kTable<RowPlacement> =
    StructOf("RowPlacement", "Rows of the hot order, as one device reads them.",
             Field{"device", &RowPlacement::device, "The reader's, of the segment."},
             Field{"lines", &RowPlacement::lines, "Empty: a plain cache, and no other device."},
             Field{"rowNs", &RowPlacement::row_ns, "What a row of each device costs."},
             Field{"hostRowNs", &RowPlacement::host_row_ns});

struct CacheOptions {
  std::string order_path;
  std::string favoured_path;
  uint64_t rows = 0;
  bool features_on_disk = false;
  uint64_t read_ahead_bytes = 0;
  int host_tier_fd = 0;
  RowPlacement placement;
};

template <>
inline constexpr auto kTable<CacheOptions> = StructOf(
    "CacheOptions",
    Field{"orderPath", &CacheOptions::order_path, "Of `cacheRank`; empty: nothing is cached."},
    Field{"favouredPath", &CacheOptions::favoured_path,
          "For a Sampler: of `cacheFavour`; empty: nobody is favoured."},
    Field{"rows", &CacheOptions::rows,
          "For a Sampler as far as any Trainer asks by rank, for a Trainer those of its cache."},
    Field{"featuresOnDisk", &CacheOptions::features_on_disk,
          "The feature file is larger than the memory it may take."},
    Field{"readAheadBytes", &CacheOptions::read_ahead_bytes,
          "For a Sampler: pages that it may ask for before they are wanted; 0: none."},
    Field{"hostTierFd", &CacheOptions::host_tier_fd,
          "For a Trainer: of `hostTierFill`, for its device to read by itself; 0: none."},
    Field{"placement", &CacheOptions::placement,
          "For a Trainer on a device: which rows it holds, and which others do."});

struct DeviceOptions {
  std::string plugin;
  uint64_t budget_bytes = 0;
};

template <>
inline constexpr auto kTable<DeviceOptions> =
    StructOf("DeviceOptions", Field{"plugin", &DeviceOptions::plugin, "Empty: a CPU device."},
             Field{"budgetBytes", &DeviceOptions::budget_bytes, "Of its memory; 0: what is free."});

// The nodes that become seeds.
struct SeedOptions {
  std::string path;
  uint64_t count = 0;
  bool shuffled = true;
};

template <>
inline constexpr auto kTable<SeedOptions> =
    StructOf("SeedOptions",
             Field{"path", &SeedOptions::path,
                   "An .npy file of int64, read by Samplers; empty: the training nodes."},
             Field{"count", &SeedOptions::count, "Of nodes in that file."},
             Field{"shuffled", &SeedOptions::shuffled, "Each epoch has an order of its own."});

// The start options of both roles.
struct ExecutorOptions {
  DatasetLocation dataset;
  SamplingOptions sampling;
  SeedOptions seeds;
  Bits64 random_seed;
  int segment_fd = -1;
  int topology_fd = -1;
  ExecutorId executor;
  CacheOptions cache;
  DeviceOptions device;
};

template <>
inline constexpr auto kTable<ExecutorOptions> =
    StructOf("ExecutorOptions", Field{"dataset", &ExecutorOptions::dataset},
             Field{"sampling", &ExecutorOptions::sampling}, Field{"seeds", &ExecutorOptions::seeds},
             Field{"randomSeed", &ExecutorOptions::random_seed},
             Field{"segmentFd", &ExecutorOptions::segment_fd},
             Field{"topologyFd", &ExecutorOptions::topology_fd},
             Field{"executor", &ExecutorOptions::executor}, Field{"cache", &ExecutorOptions::cache},
             Field{"device", &ExecutorOptions::device});

template <>
inline constexpr auto kNames<LoopEnd> =
    NamesOf<LoopEnd>("LoopEnd", {{"COMPLETE", LoopEnd::kComplete}, {"STOPPED", LoopEnd::kStopped}});

}  // namespace gnnd::node
