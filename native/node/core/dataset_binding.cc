#include "core/graph/features.h"
#include "core/graph/topology.h"
#include "core/graph/validate.h"
#include "node/core/bindings.h"
#include "node/tables.h"

// Dataset files and the topology that is made of them.

namespace gnnd::node {

template <>
inline constexpr auto kTable<DatasetProblem> =
    StructOf("DatasetProblem", Field{"path", &DatasetProblem::file},
             Field{"description", &DatasetProblem::message});

template <>
inline constexpr auto kTable<DatasetValidation> = StructOf(
    "DatasetValidation", Field{"problems", &DatasetValidation::problems, "The first ones."},
    Field{"problemCount", &DatasetValidation::num_problems, "All of them."});

namespace {

Task<DatasetValidation> ValidateDataset(const std::string& folder, const DatasetCounts& counts) {
  return {[folder, counts]() -> Result<DatasetValidation> { return Validate(folder, counts); }};
}

Task<void> Standardize(const std::string& input, const std::string& output) {
  return {[input, output] { return StandardizeFeatures(input, output); }};
}

Result<int> MakeTopology() { return GNND_VALUE(ReserveTopology()).Release(); }

Task<void> FillReserved(int fd, const DatasetLocation& location, bool alias) {
  return {[fd, location, alias]() -> Status {
    Dataset dataset = GNND_VALUE(Dataset::Open(location.folder, location.counts));
    return FillTopology(fd, dataset, alias);
  }};
}

}  // namespace

void DefineDataset(Subject& subject) {
  subject.Enum<FeatureType>()
      .Struct<DatasetCounts>()
      .Struct<DatasetLocation>()
      .Struct<DatasetProblem>()
      .Struct<DatasetValidation>()
      .Function("datasetValidate", ValidateDataset, {"folder", "counts"})
      .Function("datasetStandardize", Standardize, {"inputPath", "outputPath"})
      .Function("topologyReserve", MakeTopology, {}, "An empty memfd, the caller's to close.")
      .Function("topologyFill", FillReserved, {"fd", "location", "alias"},
                "Seals it for all Samplers of the host; `alias`: to sample by edge weight.");
}

}  // namespace gnnd::node
