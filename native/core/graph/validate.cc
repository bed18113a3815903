#include "core/graph/validate.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <optional>
#include <span>
#include <utility>

#include "core/base/finite.h"

namespace gnnd {
namespace {

constexpr uint64_t kChunkBytes = uint64_t{16} << 20;
constexpr std::array kFiles = {
    DatasetFile::kIndptr, DatasetFile::kIndices, DatasetFile::kFeatures, DatasetFile::kLabels,
    DatasetFile::kTrain,  DatasetFile::kVal,     DatasetFile::kTest,     DatasetFile::kEdgeWeights};
constexpr std::array kSplits = {DatasetFile::kTrain, DatasetFile::kVal, DatasetFile::kTest};

// A rule for elements, and how many break it.
struct Rule {
  std::string text;   // "must ..."
  std::string first;  // value and place of the first offender
  uint64_t offenders = 0;
};

std::string At(const std::string& value, uint64_t index) {
  return value + " at index " + std::to_string(index);
}

std::string AtPlace(const std::string& value, uint64_t index, uint64_t columns) {
  return value + " at row " + std::to_string(index / columns) + ", column " +
         std::to_string(index % columns);
}

std::string FloatText(float value) {
  if (std::isnan(value)) return "nan";  // without the sign that some libraries print
  char text[32];
  std::snprintf(text, sizeof text, "%g", static_cast<double>(value));
  return text;
}

std::string FloatText(Half value) { return FloatText(ToFloat(value)); }

// Arrays that are checked together: those of a type of nodes, those of a relation, or all where a
// graph is one of each.
struct Part {
  std::string prefix;  // of the names of its files
  std::vector<DatasetFile> files;
  DatasetCounts counts;  // num_nodes: of the type, or rows of the relation
  uint64_t num_sources = 0;
  std::string sources;   // what a relation's sources are called
  bool ascends = false;  // rows ascend, each source once
};

void AddProblem(DatasetValidation* result, std::string file, std::string message) {
  ++result->num_problems;
  if (result->problems.size() == DatasetValidation::kMaxListed) return;
  result->problems.push_back({std::move(file), std::move(message)});
}

class Validator {
 public:
  Validator(const std::string& folder, const Part& part, const std::vector<std::string>& checked,
            DatasetValidation* result)
      : folder_(folder), part_(part), counts_(part.counts), checked_(checked), result_(*result) {}

  void Run() {
    OpenAll();
    CheckIndptr();
    if (!WasChecked(DatasetFile::kIndices)) CheckIndices();
    if (part_.ascends) CheckRows();
    if (!WasChecked(DatasetFile::kFeatures)) CheckFeatures();
    CheckLabels();
    for (const DatasetFile split : kSplits) CheckSplit(split);
    CheckOverlap(DatasetFile::kTrain, DatasetFile::kVal);
    CheckOverlap(DatasetFile::kTrain, DatasetFile::kTest);
    CheckOverlap(DatasetFile::kVal, DatasetFile::kTest);
    CheckEdgeWeights();
  }

 private:
  // The opened file, or null when its header was already found wrong.
  const NpyArray* Find(DatasetFile file) const {
    const auto& array = arrays_[static_cast<size_t>(file)];
    return array ? &*array : nullptr;
  }

  std::string NameOf(DatasetFile file) const { return part_.prefix + FileName(file); }

  bool WasChecked(DatasetFile file) const {
    return std::find(checked_.begin(), checked_.end(), NameOf(file)) != checked_.end();
  }

  void Add(DatasetFile file, std::string message) {
    AddProblem(&result_, NameOf(file), std::move(message));
  }

  void Add(DatasetFile file, const Rule& rule) {
    if (rule.offenders == 0) return;
    std::string message = rule.text + ", found " + rule.first;
    if (rule.offenders > 1) message += " and " + std::to_string(rule.offenders - 1) + " more";
    Add(file, std::move(message));
  }

  void OpenAll() {
    for (const DatasetFile file : part_.files) {
      const size_t name_length = std::string(FileName(file)).size();
      DatasetCounts counts = counts_;
      // What can be an id of it decides the types of indices.
      if (file == DatasetFile::kIndices) counts.num_nodes = part_.num_sources;
      Result<NpyArray> array = OpenDatasetFile(file, folder_ + "/" + NameOf(file), counts);
      if (array.ok()) {
        arrays_[static_cast<size_t>(file)] = std::move(*array);
        continue;
      }
      const Status& status = array.status();
      if (file == DatasetFile::kEdgeWeights && status.code() == Code::kNotFound) continue;
      // The message starts with the file's name and ": ", which a problem holds apart.
      Add(file, status.message().substr(name_length + 2));
    }
  }

  // Calls scan(from, to) for consecutive ranges of the array's elements.
  template <typename Scan>
  static void ForRanges(const NpyArray& array, const Scan& scan) {
    const uint64_t step = kChunkBytes / BytesOf(array.type());
    for (uint64_t from = 0; from < array.size(); from += step) {
      scan(from, std::min(from + step, array.size()));
    }
  }

  // Counts the elements of [from, to) for which bad(i); show(i) describes the first of all.
  template <typename Bad, typename Show>
  static void Apply(Rule* rule, uint64_t from, uint64_t to, const Bad& bad, const Show& show) {
    uint64_t offenders = 0;
    for (uint64_t i = from; i < to; ++i) offenders += bad(i) ? 1 : 0;
    if (offenders > 0 && rule->offenders == 0) {
      uint64_t first = from;
      while (!bad(first)) ++first;
      rule->first = show(first);
    }
    rule->offenders += offenders;
  }

  void CheckIndptr() {
    const NpyArray* array = Find(DatasetFile::kIndptr);
    if (array == nullptr) return;
    const auto indptr = array->values<int64_t>();
    const auto show = [&](uint64_t i) { return At(std::to_string(indptr[i]), i); };
    Rule start{"must start at 0", "", 0};
    Rule monotone{"must not decrease", "", 0};
    Rule end{"must end at the " + std::to_string(counts_.num_edges) + " edges", "", 0};
    const uint64_t last = indptr.size() - 1;
    Apply(&start, 0, 1, [&](uint64_t i) { return indptr[i] != 0; }, show);
    ForRanges(*array, [&](uint64_t from, uint64_t to) {
      Apply(
          &monotone, std::max<uint64_t>(from, 1), to,
          [&](uint64_t i) { return indptr[i] < indptr[i - 1]; },
          [&](uint64_t i) { return show(i) + " after " + std::to_string(indptr[i - 1]); });
    });
    Apply(
        &end, last, last + 1,
        [&](uint64_t i) { return indptr[i] != static_cast<int64_t>(counts_.num_edges); }, show);
    Add(DatasetFile::kIndptr, start);
    Add(DatasetFile::kIndptr, monotone);
    Add(DatasetFile::kIndptr, end);
    rows_are_known_ = start.offenders + monotone.offenders + end.offenders == 0;
  }

  void CheckIndices() {
    const NpyArray* array = Find(DatasetFile::kIndices);
    if (array == nullptr) return;
    const auto indices = array->values<uint32_t>();
    const bool is_signed = array->type() == NpyType::kInt32;
    const auto num_sources = static_cast<uint32_t>(part_.num_sources);
    Rule range{"must be below the " + std::to_string(num_sources) + " " + part_.sources, "", 0};
    ForRanges(*array, [&](uint64_t from, uint64_t to) {
      Apply(
          &range, from, to, [&](uint64_t i) { return indices[i] >= num_sources; },
          [&](uint64_t i) {
            return At(is_signed ? std::to_string(static_cast<int32_t>(indices[i]))
                                : std::to_string(indices[i]),
                      i);
          });
    });
    Add(DatasetFile::kIndices, range);
  }

  void CheckRows() {
    const NpyArray* array = Find(DatasetFile::kIndices);
    if (array == nullptr || !rows_are_known_) return;
    const auto indices = array->values<uint32_t>();
    const auto indptr = Find(DatasetFile::kIndptr)->values<int64_t>();
    Rule ascending{"must ascend within a row, each source once", "", 0};
    for (size_t row = 0; row + 1 < indptr.size(); ++row) {
      const auto first = static_cast<uint64_t>(indptr[row]);
      const auto end = static_cast<uint64_t>(indptr[row + 1]);
      if (end - first < 2) continue;
      Apply(
          &ascending, first + 1, end, [&](uint64_t i) { return indices[i] <= indices[i - 1]; },
          [&](uint64_t i) {
            return At(std::to_string(indices[i]), i) + " after " + std::to_string(indices[i - 1]);
          });
    }
    Add(DatasetFile::kIndices, ascending);
  }

  void CheckFeatures() {
    const NpyArray* array = Find(DatasetFile::kFeatures);
    if (array == nullptr) return;
    if (array->type() == NpyType::kFloat16) {
      CheckFeatures(*array, array->values<Half>());
    } else {
      CheckFeatures(*array, array->values<float>());
    }
  }

  template <typename T>
  void CheckFeatures(const NpyArray& array, std::span<const T> features) {
    Rule finite{"must be finite", "", 0};
    ForRanges(array, [&](uint64_t from, uint64_t to) {
      Apply(
          &finite, from, to, [&](uint64_t i) { return !IsFinite(features[i]); },
          [&](uint64_t i) { return AtPlace(FloatText(features[i]), i, counts_.num_features); });
    });
    Add(DatasetFile::kFeatures, finite);
  }

  void CheckLabels() {
    const NpyArray* array = Find(DatasetFile::kLabels);
    if (array == nullptr) return;
    const std::string count = std::to_string(counts_.num_classes);
    switch (array->type()) {
      case NpyType::kInt32: {
        const auto num_classes = static_cast<int32_t>(counts_.num_classes);
        const auto bad = [=](int32_t label) { return label < -1 || label >= num_classes; };
        const auto show = [](int32_t label) { return std::to_string(label); };
        return CheckLabels<int32_t>("must be -1 or below the " + count + " classes", bad, show);
      }
      case NpyType::kUint8: {
        const auto bad = [](uint8_t label) { return label > 1 && label != kUnknownLabel; };
        const auto show = [](uint8_t label) { return std::to_string(label); };
        return CheckLabels<uint8_t>("must be 0, 1 or 255 for not known", bad, show);
      }
      default: {
        const auto bad = [](float target) { return std::isinf(target); };
        const auto show = [](float target) { return FloatText(target); };
        return CheckLabels<float>("must be finite, or nan for not known", bad, show);
      }
    }
  }

  template <typename T, typename Bad, typename Show>
  void CheckLabels(std::string text, const Bad& bad, const Show& show) {
    const NpyArray& array = *Find(DatasetFile::kLabels);
    const auto labels = array.values<T>();
    const bool has_columns = array.shape().size() == 2;
    Rule range{std::move(text), "", 0};
    ForRanges(array, [&](uint64_t from, uint64_t to) {
      Apply(
          &range, from, to, [&](uint64_t i) { return bad(labels[i]); },
          [&](uint64_t i) {
            return has_columns ? AtPlace(show(labels[i]), i, counts_.num_classes)
                               : At(show(labels[i]), i);
          });
    });
    Add(DatasetFile::kLabels, range);
  }

  // Whether anything is known about the node's label, so that a loss can be computed for it.
  bool IsLabelled(const NpyArray& labels, uint64_t node) const {
    if (labels.type() == NpyType::kInt32) return labels.values<int32_t>()[node] != -1;
    const uint64_t width = counts_.num_classes;
    if (labels.type() == NpyType::kUint8) {
      const auto row = labels.values<uint8_t>().subspan(node * width, width);
      return std::any_of(row.begin(), row.end(), [](uint8_t bit) { return bit != kUnknownLabel; });
    }
    const auto row = labels.values<float>().subspan(node * width, width);
    return std::any_of(row.begin(), row.end(), [](float target) { return !std::isnan(target); });
  }

  static const char* LabelledRule(NpyType labels) {
    if (labels == NpyType::kInt32) return "must be nodes with a label";
    if (labels == NpyType::kUint8) return "must be nodes of which a label is known";
    return "must be nodes of which a target is known";
  }

  void CheckSplit(DatasetFile file) {
    const NpyArray* array = Find(file);
    if (array == nullptr) return;
    const auto ids = array->values<int64_t>();
    const auto num_nodes = static_cast<int64_t>(counts_.num_nodes);
    const NpyArray* labels = Find(DatasetFile::kLabels);
    const auto is_node = [&](uint64_t i) { return ids[i] >= 0 && ids[i] < num_nodes; };
    const auto show = [&](uint64_t i) { return At(std::to_string(ids[i]), i); };
    const auto show_pair = [&](uint64_t i) {
      return show(i) + " after " + std::to_string(ids[i - 1]);
    };
    Rule range{"must be node ids from 0 to " + std::to_string(num_nodes - 1), "", 0};
    Rule ascending{"must ascend", "", 0};
    Rule unique{"must not repeat a node (a mask is of type bool)", "", 0};
    Rule labelled{labels == nullptr ? "" : LabelledRule(labels->type()), "", 0};
    ForRanges(*array, [&](uint64_t from, uint64_t to) {
      const uint64_t second = std::max<uint64_t>(from, 1);
      Apply(&range, from, to, [&](uint64_t i) { return !is_node(i); }, show);
      Apply(&ascending, second, to, [&](uint64_t i) { return ids[i] < ids[i - 1]; }, show_pair);
      Apply(&unique, second, to, [&](uint64_t i) { return ids[i] == ids[i - 1]; }, show);
      if (labels == nullptr) return;
      Apply(
          &labelled, from, to,
          [&](uint64_t i) {
            return is_node(i) && !IsLabelled(*labels, static_cast<uint64_t>(ids[i]));
          },
          show);
    });
    Add(file, range);
    Add(file, ascending);
    Add(file, unique);
    Add(file, labelled);
  }

  // Reports, as problems of `file`, the nodes that are in `earlier`, too.
  void CheckOverlap(DatasetFile earlier, DatasetFile file) {
    const NpyArray* earlier_array = Find(earlier);
    const NpyArray* array = Find(file);
    if (earlier_array == nullptr || array == nullptr) return;
    std::vector<int64_t> copy;
    auto others = earlier_array->values<int64_t>();
    if (!std::is_sorted(others.begin(), others.end())) {
      copy.assign(others.begin(), others.end());
      std::sort(copy.begin(), copy.end());
      others = copy;
    }
    const auto ids = array->values<int64_t>();
    Rule disjoint{std::string("must share no node with ") + FileName(earlier), "", 0};
    Apply(
        &disjoint, 0, ids.size(),
        [&](uint64_t i) { return std::binary_search(others.begin(), others.end(), ids[i]); },
        [&](uint64_t i) { return At(std::to_string(ids[i]), i); });
    Add(file, disjoint);
  }

  void CheckEdgeWeights() {
    const NpyArray* array = Find(DatasetFile::kEdgeWeights);
    if (array == nullptr) return;
    const auto weights = array->values<float>();
    Rule usable{"must be finite and not negative", "", 0};
    ForRanges(*array, [&](uint64_t from, uint64_t to) {
      Apply(
          &usable, from, to, [&](uint64_t i) { return !IsFinite(weights[i]) || weights[i] < 0.0F; },
          [&](uint64_t i) { return At(FloatText(weights[i]), i); });
    });
    Add(DatasetFile::kEdgeWeights, usable);
  }

  const std::string& folder_;
  const Part& part_;
  const DatasetCounts& counts_;
  const std::vector<std::string>& checked_;
  std::array<std::optional<NpyArray>, kFiles.size()> arrays_;
  bool rows_are_known_ = false;
  DatasetValidation& result_;
};

Part PartOf(const NodeType& type) {
  Part part;
  part.prefix = FolderOf(type);
  part.counts = CountsOf(type);
  if (type.num_features > 0) part.files.push_back(DatasetFile::kFeatures);
  if (!type.labelled) return part;
  part.files.push_back(DatasetFile::kLabels);
  part.files.insert(part.files.end(), kSplits.begin(), kSplits.end());
  return part;
}

Part PartOf(const Schema& schema, const Relation& relation) {
  const NodeType& source = schema.types[relation.source];
  Part part;
  part.prefix = FolderOf(schema, relation);
  part.files = {DatasetFile::kIndptr, DatasetFile::kIndices};
  part.counts.num_nodes = schema.types[relation.destination].num_nodes;
  part.counts.num_edges = relation.num_edges;
  part.num_sources = source.num_nodes;
  part.sources = "nodes of " + source.name;
  part.ascends = true;
  return part;
}

}  // namespace

DatasetValidation Validate(const std::string& folder, const DatasetCounts& counts,
                           const std::vector<std::string>& checked) {
  DatasetValidation result;
  const Status possible = CheckCounts(counts);
  if (!possible.ok()) {
    AddProblem(&result, "dataset.json", possible.message());
    return result;
  }
  const Part all = {"", {kFiles.begin(), kFiles.end()}, counts, counts.num_nodes, "nodes", false};
  Validator(folder, all, checked, &result).Run();
  return result;
}

DatasetValidation Validate(const std::string& folder, const Schema& schema,
                           const std::vector<std::string>& checked) {
  DatasetValidation result;
  const Status possible = CheckSchema(schema);
  if (!possible.ok()) {
    AddProblem(&result, "dataset.json", possible.message());
    return result;
  }
  for (const NodeType& type : schema.types) {
    Validator(folder, PartOf(type), checked, &result).Run();
  }
  for (const Relation& relation : schema.relations) {
    Validator(folder, PartOf(schema, relation), checked, &result).Run();
  }
  return result;
}

}  // namespace gnnd
