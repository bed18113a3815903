#include "core/prepare/propagate.h"

#include <doctest/doctest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/graph/npy.h"
#include "core/prepare/range_moments.h"
#include "core/vec/convert.h"
#include "test/support/graphs.h"
#include "test/support/npy_files.h"

namespace gnnd {
namespace {

using test::TempFolder;

constexpr uint32_t kNodes = 700;   // more than one range of rows
constexpr uint32_t kColumns = 37;  // no multiple of a vector

// A random directed graph with empty rows, self-loops and repeated neighbours, on disk.
struct Stored {
  TempFolder folder;
  test::TinyDataset tiny;
  Dataset dataset;

  explicit Stored(uint64_t random_seed = 7) {
    const test::Graph graph = test::RandomGraph(random_seed, kNodes, 40);
    tiny.indptr.assign(graph.indptr.begin(), graph.indptr.end());
    tiny.indices.assign(graph.indices.begin(), graph.indices.end());
    tiny.num_features = kColumns;
    std::mt19937_64 generator(random_seed);
    for (uint32_t i = 0; i < kNodes * kColumns; ++i) {
      tiny.features.push_back(static_cast<float>(generator() % 2001) / 1000.0F - 1.0F);
    }
    for (uint32_t v = 0; v < kNodes; ++v) {
      tiny.labels.push_back(static_cast<int32_t>(v % 3));
      if (v % 5 == 0) tiny.train.push_back(v);
      if (v % 5 == 1) tiny.val.push_back(v);
      if (v % 7 == 0 && v % 5 > 1) tiny.test.push_back(v);
    }
    tiny.WriteTo(folder);
    Result<Dataset> opened = Dataset::Open(folder.path(), tiny.counts());
    REQUIRE(opened.ok());
    dataset = std::move(*opened);
  }
};

using Matrix = std::vector<double>;  // [kNodes, kNodes] or [kNodes, kColumns]

Matrix Product(const Matrix& a, const Matrix& b, uint32_t columns) {
  Matrix c(uint64_t{kNodes} * columns);
  for (uint32_t i = 0; i < kNodes; ++i) {
    for (uint32_t k = 0; k < kNodes; ++k) {
      const double factor = a[uint64_t{i} * kNodes + k];
      if (factor == 0) continue;
      for (uint32_t j = 0; j < columns; ++j) {
        c[uint64_t{i} * columns + j] += factor * b[uint64_t{k} * columns + j];
      }
    }
  }
  return c;
}

// The operator's matrix, written down from its definition.
Matrix DenseOperator(const test::TinyDataset& tiny, const PropagationOperator& op) {
  Matrix adjacency(uint64_t{kNodes} * kNodes);
  for (uint32_t v = 0; v < kNodes; ++v) {
    for (int64_t e = tiny.indptr[v]; e < tiny.indptr[v + 1]; ++e) {
      adjacency[uint64_t{v} * kNodes + static_cast<uint32_t>(tiny.indices[e])] += 1;
    }
    if (op.self_loops) adjacency[uint64_t{v} * kNodes + v] += 1;
  }
  std::vector<double> inverse(kNodes);
  for (uint32_t v = 0; v < kNodes; ++v) {
    double degree = 0;
    for (uint32_t u = 0; u < kNodes; ++u) degree += adjacency[uint64_t{v} * kNodes + u];
    inverse[v] = degree == 0 ? 0 : 1 / degree;
  }
  const bool symmetric = op.kind == OperatorKind::kSymmetric;
  for (uint32_t v = 0; v < kNodes; ++v) {
    for (uint32_t u = 0; u < kNodes; ++u) {
      adjacency[uint64_t{v} * kNodes + u] *=
          symmetric ? std::sqrt(inverse[v]) * std::sqrt(inverse[u]) : inverse[v];
    }
  }
  if (symmetric || op.kind == OperatorKind::kRow) return adjacency;
  Matrix power(uint64_t{kNodes} * kNodes);
  for (uint32_t v = 0; v < kNodes; ++v) power[uint64_t{v} * kNodes + v] = 1;
  Matrix sum(power.size());
  double factorial = 1;
  for (uint32_t i = 0; i < op.terms; ++i) {
    if (i > 0) {
      power = Product(adjacency, power, kNodes);
      factorial *= i;
    }
    const double coefficient = op.kind == OperatorKind::kPpr
                                   ? op.alpha * std::pow(1 - op.alpha, i)
                                   : std::exp(-op.time) * std::pow(op.time, i) / factorial;
    for (size_t at = 0; at < sum.size(); ++at) sum[at] += coefficient * power[at];
  }
  return sum;
}

Result<PropagateReport> Run(const Stored& stored, const PropagateOptions& options,
                            const PropagateProbe& probe = {}) {
  PropagateProgress progress;
  Result<PropagateReport> report = Propagate(stored.dataset, options, &progress, probe);
  if (report.ok()) CHECK(progress.done == progress.total);
  return report;
}

PropagateOptions OptionsOf(PropagationPlan plan, const TempFolder& folder) {
  PropagateOptions options;
  options.plan = std::move(plan);
  options.folder = folder.path();
  return options;
}

std::map<std::string, std::string> DigestsOf(const PropagateReport& report) {
  std::map<std::string, std::string> digests;
  for (const DigestedFile& file : report.files) digests[file.name] = file.sha256;
  return digests;
}

std::set<std::string> NamesIn(const TempFolder& folder) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    names.insert(entry.path().filename());
  }
  return names;
}

const std::vector<PropagationOperator> kAllOperators = {
    {.kind = OperatorKind::kSymmetric, .self_loops = true},
    {.kind = OperatorKind::kSymmetric, .self_loops = false},
    {.kind = OperatorKind::kRow, .self_loops = false},
    {.kind = OperatorKind::kRow, .self_loops = true},
    {.kind = OperatorKind::kPpr, .self_loops = false, .alpha = 0.2, .terms = 6},
    {.kind = OperatorKind::kHeat, .self_loops = true, .time = 1.5, .terms = 5},
};

}  // namespace

TEST_CASE("propagate: every operator equals its dense float64 matrix, hop by hop") {
  const Stored stored;
  for (const PropagationOperator& op : kAllOperators) {
    CAPTURE(static_cast<uint32_t>(op.kind));
    CAPTURE(op.self_loops);
    const TempFolder out;
    const Result<PropagateReport> report =
        Run(stored, OptionsOf({.operators = {op}, .hops = 3}, out));
    REQUIRE(report.ok());
    const NpyArray nodes = std::move(*NpyArray::Open(out / "nodes.npy"));
    const NpyArray labels = std::move(*NpyArray::Open(out / "labels.npy"));
    const Matrix dense = DenseOperator(stored.tiny, op);
    Matrix rows(stored.tiny.features.begin(), stored.tiny.features.end());
    for (uint32_t hop = 0; hop <= 3; ++hop) {
      if (hop > 0) rows = Product(dense, rows, kColumns);
      const NpyArray stored_rows = std::move(*NpyArray::Open(out / RowFile(0, hop)));
      REQUIRE(stored_rows.shape() == std::vector<uint64_t>{report->rows, kColumns});
      double worst = 0;
      for (uint64_t row = 0; row < report->rows; ++row) {
        const uint32_t node = nodes.values<uint32_t>()[row];
        CHECK(labels.values<int32_t>()[row] == stored.tiny.labels[node]);
        for (uint32_t c = 0; c < kColumns; ++c) {
          const double expected = rows[uint64_t{node} * kColumns + c];
          const double found = stored_rows.values<float>()[row * kColumns + c];
          worst = std::max(worst, std::abs(found - expected));
        }
      }
      CHECK(worst < 1e-5);
    }
  }
}

TEST_CASE("propagate: rows are a permutation of each split, and start at a page") {
  const Stored stored;
  const PropagationPlan plan{.operators = {{}}, .hops = 1};
  const std::vector<uint32_t> order = RowNodes(stored.dataset, plan);
  const size_t train = stored.tiny.train.size();
  const size_t val = stored.tiny.val.size();
  const auto sorted = [&](size_t begin, size_t end) {
    std::vector<int64_t> ids(order.begin() + static_cast<int64_t>(begin),
                             order.begin() + static_cast<int64_t>(end));
    const bool moved = !std::is_sorted(ids.begin(), ids.end());
    std::sort(ids.begin(), ids.end());
    CHECK(moved);
    return ids;
  };
  CHECK(sorted(0, train) == stored.tiny.train);
  CHECK(sorted(train, train + val) == stored.tiny.val);
  CHECK(sorted(train + val, order.size()) == stored.tiny.test);
  const std::vector<uint32_t> unpermuted =
      RowNodes(stored.dataset, {.operators = {{}}, .hops = 1, .permuted = false});
  CHECK(std::is_sorted(unpermuted.begin(), unpermuted.begin() + static_cast<int64_t>(train)));
  CHECK(RowHeader(RowType::kBfloat16, 12345, kColumns).size() == kRowAlignment);
}

// The moments by which columns are standardised, from all nodes' rows.
Moments MomentsOf(const Matrix& rows) {
  Moments moments;
  for (uint32_t c = 0; c < kColumns; ++c) {
    double mean = 0;
    for (uint32_t v = 0; v < kNodes; ++v) mean += rows[uint64_t{v} * kColumns + c] / kNodes;
    double variance = 0;
    for (uint32_t v = 0; v < kNodes; ++v) {
      const double distance = rows[uint64_t{v} * kColumns + c] - mean;
      variance += distance * distance / kNodes;
    }
    moments.mean.push_back(mean);
    moments.divisor.push_back(std::sqrt(variance));
  }
  return moments;
}

Moments MomentsIn(const std::string& path) {
  const std::string bytes = test::ReadFile(path);
  REQUIRE(bytes.size() == 2 * kColumns * sizeof(double));
  std::vector<double> values(2 * kColumns);
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return {{values.begin(), values.begin() + kColumns}, {values.begin() + kColumns, values.end()}};
}

TEST_CASE("propagate: standardised rows are those of all nodes' columns after each hop") {
  const Stored stored;
  for (const PropagationOperator& op : kAllOperators) {
    CAPTURE(static_cast<uint32_t>(op.kind));
    CAPTURE(op.self_loops);
    const TempFolder out;
    const Result<PropagateReport> report =
        Run(stored, OptionsOf({.operators = {op}, .hops = 3, .standardize = true}, out));
    REQUIRE(report.ok());
    const NpyArray nodes = std::move(*NpyArray::Open(out / "nodes.npy"));
    const Matrix dense = DenseOperator(stored.tiny, op);
    Matrix rows(stored.tiny.features.begin(), stored.tiny.features.end());
    for (uint32_t hop = 0; hop <= 3; ++hop) {
      if (hop > 0) rows = Product(dense, rows, kColumns);
      const Moments expected = MomentsOf(rows);
      const Moments moments = MomentsIn(out / MomentsFile(0, hop));
      const NpyArray found = std::move(*NpyArray::Open(out / RowFile(0, hop)));
      double worst = 0;
      for (uint32_t c = 0; c < kColumns; ++c) {
        CHECK(std::abs(moments.mean[c] - expected.mean[c]) < 1e-6);
        CHECK(std::abs(moments.divisor[c] / expected.divisor[c] - 1) < 1e-4);
        for (uint64_t row = 0; row < report->rows; ++row) {
          const uint64_t node = nodes.values<uint32_t>()[row];
          const double value = (rows[node * kColumns + c] - expected.mean[c]) / expected.divisor[c];
          worst = std::max(worst, std::abs(found.values<float>()[row * kColumns + c] - value));
        }
      }
      CHECK(worst < 1e-3);
    }
  }
}

TEST_CASE("propagate: a column that is constant but for roundings is zero when standardised") {
  Stored stored;
  for (uint32_t v = 0; v < kNodes; ++v) stored.tiny.features[v * kColumns + 5] = 0.7F;
  stored.tiny.WriteTo(stored.folder);
  stored.dataset = std::move(*Dataset::Open(stored.folder.path(), stored.tiny.counts()));
  const TempFolder out;
  const PropagationOperator mean{.kind = OperatorKind::kRow, .self_loops = true};
  REQUIRE(Run(stored, OptionsOf({.operators = {mean}, .hops = 3, .standardize = true}, out)).ok());
  for (uint32_t hop = 0; hop <= 3; ++hop) {
    CHECK(MomentsIn(out / MomentsFile(0, hop)).divisor[5] == 1);
    const NpyArray found = std::move(*NpyArray::Open(out / RowFile(0, hop)));
    for (uint64_t i = 5; i < found.size(); i += kColumns) {
      CHECK(std::abs(found.values<float>()[i]) < 1e-6);
    }
  }
}

TEST_CASE("propagate: standardising refuses what is not finite") {
  Stored stored;
  stored.tiny.features[3 * kColumns + 2] = std::numeric_limits<float>::quiet_NaN();
  stored.tiny.WriteTo(stored.folder);
  stored.dataset = std::move(*Dataset::Open(stored.folder.path(), stored.tiny.counts()));
  const TempFolder out;
  const Status status =
      Run(stored, OptionsOf({.operators = {{}}, .hops = 1, .standardize = true}, out)).status();
  CHECK(status.code() == Code::kDatasetCorrupt);
  CHECK(status.message().find("column 2") != std::string::npos);
}

TEST_CASE("propagate: blocks, threads and memory decide no bit") {
  const Stored stored;
  const PropagationPlan plan{.operators = kAllOperators, .hops = 2, .standardize = true};
  std::map<std::string, std::string> expected;
  for (const uint64_t columns : {0, 37, 16, 5, 1}) {
    for (const uint32_t threads : {1, 2, 5}) {
      CAPTURE(columns);
      CAPTURE(threads);
      const TempFolder out;
      PropagateOptions options = OptionsOf(plan, out);
      options.columns = columns;
      options.threads = threads;
      const Result<PropagateReport> report = Run(stored, options);
      REQUIRE(report.ok());
      if (expected.empty()) expected = DigestsOf(*report);
      CHECK(DigestsOf(*report) == expected);
      CHECK(NamesIn(out).size() == expected.size());  // no part, no state
    }
  }
  const TempFolder out;
  PropagateOptions options = OptionsOf(plan, out);
  options.memory_bytes = 8 * (4 * (3 * kNodes + 400) + RangeMoments::BytesOf(kNodes, 1));
  const Result<PropagateReport> report = Run(stored, options);
  REQUIRE(report.ok());
  CHECK(report->block_columns == 8);
  CHECK(report->memory_bytes <= options.memory_bytes);
  CHECK(DigestsOf(*report) == expected);
}

TEST_CASE("propagate: narrow rows are the float32 ones rounded once") {
  const Stored stored;
  const PropagationPlan plan{.operators = {{.kind = OperatorKind::kRow}}, .hops = 2};
  const TempFolder wide_folder;
  REQUIRE(Run(stored, OptionsOf(plan, wide_folder)).ok());
  for (const RowType type : {RowType::kFloat16, RowType::kBfloat16}) {
    const TempFolder out;
    PropagateOptions options = OptionsOf(plan, out);
    options.plan.row_type = type;
    options.columns = 8;
    REQUIRE(Run(stored, options).ok());
    for (uint32_t hop = 0; hop <= 2; ++hop) {
      const NpyArray wide = std::move(*NpyArray::Open(wide_folder / RowFile(0, hop)));
      const NpyArray narrow = std::move(*NpyArray::Open(out / RowFile(0, hop)));
      bool equal = true;
      for (uint64_t i = 0; i < wide.size(); ++i) {
        const float value = wide.values<float>()[i];
        equal = equal &&
                (type == RowType::kFloat16 ? narrow.values<Half>()[i] == ToHalf(value)
                                           : narrow.values<Bfloat16>()[i] == ToBfloat16(value));
      }
      CHECK(equal);
    }
  }
}

TEST_CASE("propagate: float16 refuses what it lacks") {
  Stored stored;
  stored.tiny.features[stored.tiny.val[0] * kColumns] = 70000.0F;
  stored.tiny.WriteTo(stored.folder);
  stored.dataset = std::move(*Dataset::Open(stored.folder.path(), stored.tiny.counts()));
  const TempFolder out;
  const Status status =
      Run(stored, OptionsOf({.operators = {{}}, .hops = 1, .row_type = RowType::kFloat16}, out))
          .status();
  CHECK(status.code() == Code::kDatasetCorrupt);
  CHECK(status.message().find("70000") != std::string::npos);
  CHECK(NamesIn(out) == std::set<std::string>{"labels.npy", "nodes.npy"});
}

TEST_CASE("propagate: killed anywhere, the next run goes on from what is there") {
  const Stored stored;
  const PropagationPlan plan{
      .operators = {kAllOperators[0], kAllOperators[4]}, .hops = 3, .standardize = true};
  const TempFolder whole;
  const Result<PropagateReport> undisturbed = Run(stored, OptionsOf(plan, whole));
  REQUIRE(undisturbed.ok());
  struct Kill {
    const char* point;
    int nth;
  };
  // Within a hop, after one, after its rows, after its state, while files are joined.
  for (const Kill& kill : {Kill{"hop0", 1}, Kill{"range", 1}, Kill{"range", 9}, Kill{"hop", 2},
                           Kill{"hop", 8}, Kill{"part", 5}, Kill{"state", 3}, Kill{"join", 2}}) {
    CAPTURE(kill.point);
    CAPTURE(kill.nth);
    const TempFolder out;
    PropagateOptions options = OptionsOf(plan, out);
    options.columns = 16;
    options.threads = 2;
    options.edges_per_state = 0;
    const pid_t child = fork();
    if (child == 0) {
      std::atomic<int> left = kill.nth;
      PropagateProgress progress;
      static_cast<void>(Propagate(stored.dataset, options, &progress, [&](const char* point) {
        if (std::string(point) == kill.point && --left == 0) ::kill(getpid(), SIGKILL);
      }));
      _exit(0);
    }
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    REQUIRE(WIFSIGNALED(status));
    const Result<PropagateReport> report = Run(stored, options);
    REQUIRE(report.ok());
    CHECK(DigestsOf(*report) == DigestsOf(*undisturbed));
    CHECK(NamesIn(out).size() == report->files.size());
    const bool early = std::string(kill.point) == "hop0" || std::string(kill.point) == "range";
    if (!early || kill.nth > 8) CHECK(report->edge_columns < undisturbed->edge_columns);
    // Nothing is left to do.
    CHECK(Run(stored, options)->edge_columns == 0);
  }
}

TEST_CASE("propagate: a part that is cut short is made again") {
  const Stored stored;
  const PropagationPlan plan{.operators = {{}}, .hops = 2, .standardize = true};
  const TempFolder out;
  const PropagateOptions options = OptionsOf(plan, out);
  const Result<PropagateReport> first = Run(stored, options);
  REQUIRE(first.ok());
  std::filesystem::resize_file(out / "op0-hop2.npy", 5000);
  test::WriteFile(out / "op0-hop1.npy.tmp-abc123", "half");
  const Result<PropagateReport> second = Run(stored, options);
  REQUIRE(second.ok());
  CHECK(DigestsOf(*second) == DigestsOf(*first));
  std::filesystem::remove(out / MomentsFile(0, 1));
  CHECK(DigestsOf(*Run(stored, options)) == DigestsOf(*first));
  CHECK(second->edge_columns > 0);
  CHECK(NamesIn(out).size() == first->files.size());
}

TEST_CASE("propagate: a write that fails ends it, and what is complete stays") {
  const Stored stored;
  const PropagationPlan plan{.operators = {kAllOperators[2]}, .hops = 2};
  const TempFolder whole;
  const Result<PropagateReport> undisturbed = Run(stored, OptionsOf(plan, whole));
  REQUIRE(undisturbed.ok());
  const TempFolder out;
  PropagateOptions options = OptionsOf(plan, out);
  options.columns = 16;
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGXFSZ, SIG_IGN);
    // Parts fit, the joined file does not.
    const rlimit limit{30000, 30000};
    setrlimit(RLIMIT_FSIZE, &limit);
    // Hop 0 does not fit, either; it comes from the undisturbed run.
    PropagateProgress progress;
    const Result<PropagateReport> report = Propagate(stored.dataset, options, &progress, {});
    _exit(report.ok() ? 1 : (report.status().code() == Code::kIo ? 0 : 2));
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
  for (const std::string& name : NamesIn(out)) CHECK(name.find(".tmp") == std::string::npos);
  const Result<PropagateReport> report = Run(stored, options);
  REQUIRE(report.ok());
  CHECK(DigestsOf(*report) == DigestsOf(*undisturbed));
}

TEST_CASE("propagate: a plan that cannot be is refused by field") {
  const auto message = [](const PropagationPlan& plan) { return CheckPlan(plan).message(); };
  CHECK(message({.operators = {}, .hops = 1}).find("operators") == 0);
  CHECK(message({.operators = {{}}, .hops = 0}).find("hops") == 0);
  CHECK(
      message({.operators = {{.kind = static_cast<OperatorKind>(9)}}}).find("operators[0].kind") ==
      0);
  const PropagationOperator ppr{.kind = OperatorKind::kPpr, .alpha = 0};
  CHECK(message({.operators = {{}, ppr}}).find("operators[1].alpha") == 0);
  const PropagationOperator heat{.kind = OperatorKind::kHeat, .time = 0};
  CHECK(message({.operators = {heat}}).find("operators[0].time") == 0);
  CHECK(SizesOf({.num_nodes = 1000, .num_features = 4, .train = 10}, {.operators = {{}}}, 100, 0)
            .status()
            .code() == Code::kInvalidArgument);
}

TEST_CASE("ToHalf: to the nearest, ties to even, and back") {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<Half>(bits);
    const float value = ToFloat(half);
    if (value != value) continue;
    CHECK(ToHalf(value) == half);
    if ((bits & 0x7FFF) >= 0x7BFF) continue;
    const float next = ToFloat(static_cast<Half>(bits + 1));
    const float middle = value + (next - value) / 2;
    CHECK(ToHalf(middle) == static_cast<Half>(bits % 2 == 0 ? bits : bits + 1));
    CHECK(ToHalf(std::nextafter(middle, next)) == static_cast<Half>(bits + 1));
  }
  CHECK(ToHalf(65519.9F) == ToHalf(65504.0F));
  CHECK(ToFloat(ToHalf(65520.0F)) == INFINITY);
}

}  // namespace gnnd
