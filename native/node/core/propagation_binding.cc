#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include "core/prepare/propagate.h"
#include "node/core/bindings.h"
#include "node/tables.h"

// Propagation; except for the sizes, only child processes call it.

namespace gnnd::node {

template <>
inline constexpr auto kNames<OperatorKind> =
    NamesOf<OperatorKind>("PropagationKind", {{"SYMMETRIC", OperatorKind::kSymmetric},
                                              {"ROW", OperatorKind::kRow},
                                              {"PPR", OperatorKind::kPpr},
                                              {"HEAT", OperatorKind::kHeat}});

template <>
inline constexpr auto kNames<RowType> =
    NamesOf<RowType>("RowDtype", {{"FLOAT32", RowType::kFloat32},
                                  {"FLOAT16", RowType::kFloat16},
                                  {"BFLOAT16", RowType::kBfloat16}});

template <>
inline constexpr auto kTable<PropagationOperator> = StructOf(
    "PropagationOperator", Field{"kind", &PropagationOperator::kind},
    Field{"selfLoops", &PropagationOperator::self_loops},
    Field{"alpha", &PropagationOperator::alpha, "Read for PPR."},
    Field{"time", &PropagationOperator::time, "Read for HEAT."},
    Field{"terms", &PropagationOperator::terms, "Terms of PPR and HEAT, the identity included."});

// A PropagationPlan whose random seed has all 64 bits.
struct PlanFields {
  std::vector<PropagationOperator> operators;
  uint32_t hops = 0;
  RowType row_type = RowType::kFloat32;
  Bits64 random_seed;
  bool permuted = true;
  bool standardize = false;
  bool all_nodes = false;
};

template <>
inline constexpr auto kTable<PlanFields> = StructOf(
    "PropagationPlan", Field{"operators", &PlanFields::operators}, Field{"hops", &PlanFields::hops},
    Field{"rowDtype", &PlanFields::row_type}, Field{"randomSeed", &PlanFields::random_seed},
    Field{"permuted", &PlanFields::permuted, "False: rows in the order of node ids."},
    Field{"standardize", &PlanFields::standardize, "Each column of each hop, over all nodes."},
    Field{"allNodes", &PlanFields::all_nodes,
          "Rows of all nodes in the order of ids, not of labelled nodes alone."});

template <>
inline constexpr auto kTable<PropagationSizes> =
    StructOf("PropagationSizes", Field{"rows", &PropagationSizes::rows, "Rows of each file."},
             Field{"fileBytes", &PropagationSizes::file_bytes},
             Field{"peakBytes", &PropagationSizes::peak_bytes,
                   "Most bytes on disk while the files are made."},
             Field{"memoryBytes", &PropagationSizes::memory_bytes},
             Field{"blockColumns", &PropagationSizes::block_columns},
             Field{"blocks", &PropagationSizes::blocks},
             Field{"steps", &PropagationSizes::steps, "Passes over the topology."});

struct PropagateFields {
  DatasetLocation dataset;
  PlanFields plan;
  std::string folder;
  std::string moments_from;
  uint64_t memory_bytes = 0;
  uint32_t threads = 0;
  DeviceOptions device;
};

template <>
inline constexpr auto kTable<PropagateFields> = StructOf(
    "PropagateOptions", Field{"dataset", &PropagateFields::dataset},
    Field{"plan", &PropagateFields::plan},
    Field{"folder", &PropagateFields::folder,
          "An existing folder for this plan and dataset alone."},
    Field{"momentsFrom", &PropagateFields::moments_from,
          "Folder of a propagation by whose moments columns are standardised; empty: their own."},
    Field{"memoryBytes", &PropagateFields::memory_bytes, "Memory for columns of all nodes."},
    Field{"threads", &PropagateFields::threads},
    Field{"device", &PropagateFields::device,
          "The device that multiplies; no plug-in: the host's cores."});

template <>
inline constexpr auto kTable<DigestedFile> =
    StructOf("DigestedFile", Field{"name", &DigestedFile::name},
             Field{"bytes", &DigestedFile::bytes}, Field{"sha256", &DigestedFile::sha256});

template <>
inline constexpr auto kTable<PropagateReport> =
    StructOf("PropagateReport", Field{"files", &PropagateReport::files},
             Field{"rows", &PropagateReport::rows},
             Field{"edgeColumns", &PropagateReport::edge_columns,
                   "Edges times columns that this run added."},
             Field{"deviceEdgeColumns", &PropagateReport::device_edge_columns,
                   "The part of them that a device added."},
             Field{"deviceProblem", &PropagateReport::device_problem,
                   "Why a device was given up; empty: it was not."},
             Field{"memoryBytes", &PropagateReport::memory_bytes},
             Field{"blockColumns", &PropagateReport::block_columns},
             Field{"blocks", &PropagateReport::blocks});

struct ProgressFields {
  uint64_t done;
  uint64_t resumed;
  uint64_t total;
  uint32_t op;
  uint32_t hop;
  uint64_t column;
  bool finishing;
};

template <>
inline constexpr auto kTable<ProgressFields> = StructOf(
    "PropagationProgress", Field{"done", &ProgressFields::done, "Edges times columns."},
    Field{"resumed", &ProgressFields::resumed, "The part of them that was found done."},
    Field{"total", &ProgressFields::total, "0: not known yet."}, Field{"op", &ProgressFields::op},
    Field{"hop", &ProgressFields::hop}, Field{"column", &ProgressFields::column},
    Field{"finishing", &ProgressFields::finishing, "Only digests are left."});

constexpr napi_type_tag kProgressTag = {0x676E6E64'70726F70ULL, 0x70726F67'72657373ULL};

using SharedProgress = std::shared_ptr<PropagateProgress>;

template <>
struct Codec<SharedProgress> {
  static std::string Type() { return "PropagationHandle"; }
  static SharedProgress Read(const Napi::Value& value, const std::string& path) {
    const bool is_ours = value.IsExternal() &&
                         value.As<Napi::External<SharedProgress>>().CheckTypeTag(&kProgressTag);
    if (!is_ours) Refuse(value.Env(), path, "a propagation's handle");
    return *value.As<Napi::External<SharedProgress>>().Data();
  }
  static Napi::Value Write(Napi::Env env, const SharedProgress& progress) {
    auto handle = Napi::External<SharedProgress>::New(
        env, new SharedProgress(progress), [](Napi::Env, SharedProgress* owned) { delete owned; });
    handle.TypeTag(&kProgressTag);
    return handle;
  }
};

namespace {

PropagationPlan PlanOf(const PlanFields& fields) {
  return {fields.operators, fields.hops,        fields.row_type, fields.random_seed.value,
          fields.permuted,  fields.standardize, fields.all_nodes};
}

Result<PropagationSizes> Sizes(const DatasetCounts& counts, const PlanFields& fields,
                               uint64_t memory_bytes) {
  const PropagationPlan plan = PlanOf(fields);
  GNND_TRY(CheckPlan(plan));
  return SizesOf(counts, plan, memory_bytes, 0);
}

SharedProgress Open() { return std::make_shared<PropagateProgress>(); }

Task<PropagateReport> RunPropagation(const SharedProgress& progress,
                                     const PropagateFields& fields) {
  return {[progress, fields]() -> Result<PropagateReport> {
    const DatasetLocation& location = fields.dataset;
    const Dataset dataset =
        GNND_VALUE(Dataset::Open(location.folder, location.counts, location.features_path));
    PropagateOptions options;
    options.plan = PlanOf(fields.plan);
    options.folder = fields.folder;
    options.moments_from = fields.moments_from;
    options.memory_bytes = fields.memory_bytes;
    options.threads = fields.threads;
    options.device = {fields.device.plugin, fields.device.budget_bytes};
    options.left_device = [](const Status& why) {
      static_cast<void>(std::fprintf(stderr,
                                     "gnnd.cores: the host's cores propagate in place of the "
                                     "device: %s\n",
                                     why.message().c_str()));
    };
    return Propagate(dataset, options, progress.get());
  }};
}

ProgressFields ProgressOf(const SharedProgress& progress) {
  return {progress->done, progress->resumed, progress->total,    progress->op,
          progress->hop,  progress->column,  progress->finishing};
}

}  // namespace

void DefinePropagation(Subject& subject) {
  subject.Enum<OperatorKind>()
      .Enum<RowType>()
      .Struct<PropagationOperator>()
      .Struct<PlanFields>()
      .Struct<PropagationSizes>()
      .Struct<PropagateFields>()
      .Struct<DigestedFile>()
      .Struct<PropagateReport>()
      .Struct<ProgressFields>()
      .Text(
          "/** How far a propagation is. */\n"
          "export type PropagationHandle = { readonly propagation: unique symbol };\n")
      .Function("propagationSizes", Sizes, {"counts", "plan", "memoryBytes"})
      .Function("propagationOpen", Open, {}, "For one run.")
      .Function("propagationRun", RunPropagation, {"handle", "options"},
                "Makes what is missing in the folder.")
      .Function("propagationProgress", ProgressOf, {"handle"});
}

}  // namespace gnnd::node
