#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/graph/array_copy.h"
#include "core/graph/features.h"
#include "core/graph/topology.h"
#include "core/graph/validate.h"
#include "core/prepare/mean_rows.h"
#include "core/prepare/message_graph.h"
#include "node/core/bindings.h"
#include "node/tables.h"

// Dataset files and the topology made from them.

namespace gnnd::node {

template <>
inline constexpr auto kTable<DatasetProblem> =
    StructOf("DatasetProblem", Field{"path", &DatasetProblem::file},
             Field{"description", &DatasetProblem::message});

template <>
inline constexpr auto kTable<DatasetValidation> = StructOf(
    "DatasetValidation", Field{"problems", &DatasetValidation::problems, "The first ones."},
    Field{"problemCount", &DatasetValidation::num_problems, "All of them."});

template <>
inline constexpr auto kNames<ElementRule> =
    NamesOf<ElementRule>("ElementRule", {{"ANY", ElementRule::kAny},
                                         {"NODES", ElementRule::kNodes},
                                         {"FINITE_FLOAT32", ElementRule::kFiniteFloat32},
                                         {"FINITE_FLOAT16", ElementRule::kFiniteFloat16}});

template <>
inline constexpr auto kTable<ArrayCopyOptions> = StructOf(
    "ArrayCopyOptions", Field{"source", &ArrayCopyOptions::source},
    Field{"sourceAt", &ArrayCopyOptions::source_at, "Offset of the first element in the source."},
    Field{"bytes", &ArrayCopyOptions::bytes},
    Field{"targetFd", &ArrayCopyOptions::target_fd,
          "Open for writing until the last step; -1: nothing is written."},
    Field{"targetAt", &ArrayCopyOptions::target_at}, Field{"rule", &ArrayCopyOptions::rule},
    Field{"numNodes", &ArrayCopyOptions::num_nodes, "For the rule NODES."});

template <>
inline constexpr auto kTable<ArrayCopied> =
    StructOf("ArrayCopied", Field{"sha256", &ArrayCopied::sha256, "Digest of the elements."},
             Field{"clean", &ArrayCopied::clean, "Every element meets the rule."});

template <>
inline constexpr auto kNames<TopologyPlace> = NamesOf<TopologyPlace>(
    "TopologyPlace", {{"MEMORY", TopologyPlace::kMemory}, {"FILE", TopologyPlace::kFile}});

template <>
inline constexpr auto kTable<TopologyOptions> =
    StructOf("TopologyOptions",
             Field{"place", &TopologyOptions::place, "FILE: it stays in the dataset's files."},
             Field{"alias", &TopologyOptions::alias, "To sample by edge weight; in MEMORY only."});

template <>
inline constexpr auto kTable<MeanRowsOptions> =
    StructOf("MeanRowsOptions", "Input rows of a type without features: means over a relation.",
             Field{"folder", &MeanRowsOptions::folder}, Field{"schema", &MeanRowsOptions::schema},
             Field{"relation", &MeanRowsOptions::relation, "Index in the schema; to the type."},
             Field{"sourceRows", &MeanRowsOptions::source_rows,
                   "Rows of the relation's source type; empty: features.npy of its folder."},
             Field{"output", &MeanRowsOptions::output, "A path, in an existing folder."},
             Field{"threads", &MeanRowsOptions::threads});

// PositiveWalks, and MessageGraphOptions, whose random seeds have all 64 bits.
struct WalkFields {
  uint32_t per_node = 0;
  uint32_t length = 0;
  uint32_t window = 0;
  Bits64 random_seed;
};

template <>
inline constexpr auto kTable<WalkFields> =
    StructOf("PositiveWalks", "Walks whose nodes are pairs to learn.",
             Field{"perNode", &WalkFields::per_node, "0: links are learnt."},
             Field{"length", &WalkFields::length, "Steps."},
             Field{"window", &WalkFields::window, "Steps between the nodes of a pair, at most."},
             Field{"randomSeed", &WalkFields::random_seed, "Of the walks alone."});

struct MessageGraphFields {
  double validation = 0;
  double test = 0;
  Bits64 random_seed;
  bool keep_val = false;
  bool given = false;
  WalkFields walks;
};

template <>
inline constexpr auto kTable<MessageGraphFields> =
    StructOf("MessageGraphOptions",
             Field{"validation", &MessageGraphFields::validation, "Share of links for validation."},
             Field{"test", &MessageGraphFields::test, "Share of links for the test."},
             Field{"randomSeed", &MessageGraphFields::random_seed, "Of the split alone."},
             Field{"keepVal", &MessageGraphFields::keep_val, "Validation links stay in the graph."},
             Field{"given", &MessageGraphFields::given,
                   "The dataset has lists of its own: nothing is split, and every edge stays."},
             Field{"walks", &MessageGraphFields::walks, "In place of training links."});

template <>
inline constexpr auto kTable<MessageGraphCounts> = StructOf(
    "MessageGraphCounts", "A graph that lacks some links, and the lists of all links.",
    Field{"numEdges", &MessageGraphCounts::num_edges, "That are left."},
    Field{"symmetric", &MessageGraphCounts::symmetric,
          "Every edge has its reverse, and both are one link."},
    Field{"train", &MessageGraphCounts::train, "Links."},
    Field{"val", &MessageGraphCounts::val, "Links."},
    Field{"test", &MessageGraphCounts::test, "Links."},
    Field{"valPool", &MessageGraphCounts::val_pool, "Pairs that are none, of given lists."},
    Field{"testPool", &MessageGraphCounts::test_pool, "Likewise."},
    Field{"overlap", &MessageGraphCounts::overlap,
          "Of given lists: validation and test links that are edges."});

constexpr napi_type_tag kArrayCopyTag = {0x676E6E64'61727261ULL, 0x795F636F'70795F68ULL};

// Shared, so that a step that runs on its thread outlives the handle.
using SharedCopy = std::shared_ptr<ArrayCopy>;

template <>
struct Codec<SharedCopy> {
  static std::string Type() { return "ArrayCopyHandle"; }
  static SharedCopy Read(const Napi::Value& value, const std::string& path) {
    const bool is_copy =
        value.IsExternal() && value.As<Napi::External<SharedCopy>>().CheckTypeTag(&kArrayCopyTag);
    if (!is_copy) Refuse(value.Env(), path, "a copy under way");
    return *value.As<Napi::External<SharedCopy>>().Data();
  }
  static Napi::Value Write(Napi::Env env, const SharedCopy& copy) {
    auto handle = Napi::External<SharedCopy>::New(
        env, new SharedCopy(copy), [](Napi::Env, SharedCopy* owned) { delete owned; });
    handle.TypeTag(&kArrayCopyTag);
    return handle;
  }
};

namespace {

Task<DatasetValidation> ValidateDataset(const std::string& folder, const DatasetCounts& counts,
                                        const std::vector<std::string>& checked) {
  return {[folder, counts, checked]() -> Result<DatasetValidation> {
    return Validate(folder, counts, checked);
  }};
}

Task<DatasetValidation> ValidateTyped(const std::string& folder, const Schema& schema,
                                      const std::vector<std::string>& checked) {
  return {[folder, schema, checked]() -> Result<DatasetValidation> {
    return Validate(folder, schema, checked);
  }};
}

Result<SharedCopy> OpenCopy(const ArrayCopyOptions& options) {
  return SharedCopy(GNND_VALUE(ArrayCopy::Open(options)));
}

Task<bool> StepCopy(const SharedCopy& copy, uint64_t bytes) {
  return {[copy, bytes] { return copy->Step(bytes); }};
}

ArrayCopied FinishCopy(const SharedCopy& copy) { return copy->Finish(); }

uint64_t CountUnnamed(const SharedCopy& copy, const std::vector<uint32_t>& nodes) {
  return copy->CountUnnamed(nodes);
}

Task<void> Standardize(const std::string& input, const std::string& output,
                       const std::string& moments) {
  return {[input, output, moments] { return StandardizeFeatures(input, output, moments); }};
}

Task<void> AverageRows(const MeanRowsOptions& options) {
  return {[options] { return WriteMeanRows(options); }};
}

Result<int> MakeTopology() { return GNND_VALUE(ReserveTopology()).Release(); }

Task<void> FillReserved(int fd, const DatasetLocation& location, const TopologyOptions& options) {
  return {[fd, location, options]() -> Status {
    if (!location.schema.types.empty()) {
      TypedDataset typed =
          GNND_VALUE(TypedDataset::Open(location.folder, location.schema, location.type_rows));
      return FillTopology(fd, typed, options);
    }
    Dataset dataset = GNND_VALUE(Dataset::Open(location.folder, location.counts));
    return FillTopology(fd, dataset, options);
  }};
}

Task<MessageGraphCounts> MakeMessages(const DatasetLocation& location,
                                      const MessageGraphFields& fields, const std::string& folder) {
  return {[location, fields, folder] {
    const WalkFields& walks = fields.walks;
    const MessageGraphOptions options{
        fields.validation,
        fields.test,
        fields.random_seed.value,
        fields.keep_val,
        fields.given,
        {walks.per_node, walks.length, walks.window, walks.random_seed.value}};
    return MakeMessageGraph(location.folder, location.counts, options, folder);
  }};
}

}  // namespace

void DefineDataset(Subject& subject) {
  subject.Enum<FeatureType>()
      .Enum<DatasetTask>()
      .Struct<DatasetCounts>()
      .Struct<NodeType>()
      .Struct<Relation>()
      .Struct<Schema>()
      .Struct<DatasetLocation>()
      .Struct<DatasetProblem>()
      .Struct<DatasetValidation>()
      .Struct<MeanRowsOptions>()
      .Enum<TopologyPlace>()
      .Struct<TopologyOptions>()
      .Enum<ElementRule>()
      .Struct<ArrayCopyOptions>()
      .Struct<ArrayCopied>()
      .Struct<WalkFields>()
      .Struct<MessageGraphFields>()
      .Struct<MessageGraphCounts>()
      .Text(
          "/** A copy under way; closed when nothing refers to it. */\n"
          "export type ArrayCopyHandle = { readonly arrayCopy: unique symbol };\n")
      .Function("datasetValidate", ValidateDataset, {"folder", "counts", "checked"},
                "`checked` names files whose elements were checked as they were copied.")
      .Function("datasetValidateTyped", ValidateTyped, {"folder", "schema", "checked"},
                "The same of several types; files are named from the dataset's folder on.")
      .Function("arrayCopyOpen", OpenCopy, {"options"})
      .Function("arrayCopyStep", StepCopy, {"copy", "bytes"},
                "The next so many; false once all is done.")
      .Function("arrayCopyFinish", FinishCopy, {"copy"}, "After the last step, once.")
      .Function("arrayCopyUnnamed", CountUnnamed, {"copy", "nodes"},
                "Number of the nodes that no element named (rule NODES).")
      .Function("datasetStandardize", Standardize, {"inputPath", "outputPath", "momentsPath"})
      .Function("datasetAverage", AverageRows, {"options"},
                "Writes float32 rows of the relation's destinations, for child processes.")
      .Function("topologyReserve", MakeTopology, {}, "An empty memfd, the caller's to close.")
      .Function("topologyFill", FillReserved, {"fd", "location", "options"},
                "Seals it for all Samplers of the host.")
      .Function("messageGraphMake", MakeMessages, {"location", "options", "folder"},
                "Writes to an empty folder; reads the graph, so it is for child processes.");
}

}  // namespace gnnd::node
