// Compares the feature gather with the memory's own speed.
//
//   gather_bench [TABLE_MB] [ROUNDS]      (1024 MB, 5 rounds)
//
// Gathers random rows of a table on 2 MiB pages into one output of 16,384 rows. "memcpy" copies row
// by row without prefetching. "probe" touches the lines of the same rows in the same order and
// copies nothing, with the processor's miss buffers kept full: the lower bound for a gather.
// "float16" gathers rows of as many columns in float16 and widens them. All four are measured in
// turn, in the same rounds; the median round counts. Prints a table for people, then one line of
// JSON.

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "core/base/check.h"
#include "core/base/prefetch.h"
#include "core/graph/features.h"

namespace {

constexpr uint64_t kRowsPerCall = 16384;
constexpr uint64_t kCalls = 16;  // each with rows of its own, so that no call finds them cached
constexpr uint64_t kLineBytes = 64;

double Seconds() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(now).count();
}

// Keeps results from being optimised away.
volatile float sink = 0;

std::span<float> MakeTable(uint64_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  GNND_CHECK(memory != MAP_FAILED);
  static_cast<void>(madvise(memory, bytes, MADV_HUGEPAGE));
  const std::span<float> table(static_cast<float*>(memory), bytes / sizeof(float));
  for (uint64_t i = 0; i < table.size(); ++i) table[i] = static_cast<float>(i & 0xFFFF);
  return table;
}

std::vector<uint32_t> RandomIds(uint64_t count, uint64_t bound) {
  std::mt19937_64 random(1);
  std::vector<uint32_t> ids(count);
  for (uint32_t& id : ids) id = static_cast<uint32_t>(random() % bound);
  return ids;
}

void CopyRows(std::span<const float> table, uint64_t dim, std::span<const uint32_t> rows,
              std::span<float> out) {
  for (uint64_t i = 0; i < rows.size(); ++i) {
    std::memcpy(out.data() + i * dim, table.data() + rows[i] * dim, dim * sizeof(float));
  }
}

void TouchLines(std::span<const float> table, std::span<const uint32_t> lines) {
  constexpr uint64_t kAhead = 64;
  const gnnd::PrefetchLevel level = gnnd::BestPrefetchLevel();
  constexpr uint64_t kFloatsPerLine = kLineBytes / sizeof(float);
  float sum = 0;
  for (uint64_t i = 0; i < lines.size(); ++i) {
    if (i + kAhead < lines.size()) {
      gnnd::Prefetch(level, table.data() + lines[i + kAhead] * kFloatsPerLine);
    }
    sum += table[lines[i] * kFloatsPerLine];
  }
  sink = sum;
}

template <typename Work>
double TimeOf(const Work& work) {
  const double start = Seconds();
  for (uint64_t call = 0; call < kCalls; ++call) work(call);
  return Seconds() - start;
}

double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<int64_t>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

struct Measured {
  uint64_t row_bytes = 0;
  double lines_per_row = 0;
  double gather = 0;  // seconds per row
  double copy = 0;    // seconds per row
  double half = 0;    // seconds per row in float16
  double probe = 0;   // seconds per line
};

Measured Measure(std::span<const float> table, uint64_t dim, int rounds) {
  const std::vector<uint32_t> rows = RandomIds(kRowsPerCall * kCalls, table.size() / dim);
  std::vector<float> out(kRowsPerCall * dim);

  Measured measured;
  measured.row_bytes = dim * sizeof(float);
  std::array<std::vector<uint32_t>, kCalls> lines;  // lines of each call's rows
  for (uint64_t i = 0; i < rows.size(); ++i) {
    const uint64_t first = rows[i] * measured.row_bytes;
    const uint64_t last = first + measured.row_bytes - 1;
    for (uint64_t line = first / kLineBytes; line <= last / kLineBytes; ++line) {
      lines[i / kRowsPerCall].push_back(static_cast<uint32_t>(line));
    }
  }
  uint64_t num_lines = 0;
  for (const auto& of_call : lines) num_lines += of_call.size();
  measured.lines_per_row = static_cast<double>(num_lines) / static_cast<double>(rows.size());

  const auto part = [&rows](uint64_t call) {
    return std::span(rows).subspan(call * kRowsPerCall, kRowsPerCall);
  };
  std::vector<double> gather;
  std::vector<double> copy;
  std::vector<double> half;
  std::vector<double> probe;
  const uint64_t elements = table.size() / dim * dim;
  const gnnd::RowTable floats(table.first(elements), dim);
  // The first half of the memory as float16 rows: as many, with as many columns.
  const gnnd::RowTable halves(gnnd::FeatureType::kFloat16,
                              std::as_bytes(table).first(elements * sizeof(gnnd::Half)), dim);
  for (int round = 0; round < rounds; ++round) {
    gather.push_back(TimeOf([&](uint64_t call) { gnnd::GatherRows(floats, part(call), out); }));
    half.push_back(TimeOf([&](uint64_t call) { gnnd::GatherRows(halves, part(call), out); }));
    copy.push_back(TimeOf([&](uint64_t call) { CopyRows(table, dim, part(call), out); }));
    probe.push_back(TimeOf([&](uint64_t call) { TouchLines(table, lines[call]); }));
  }
  const auto count = static_cast<double>(rows.size());
  measured.gather = Median(gather) / count;
  measured.copy = Median(copy) / count;
  measured.half = Median(half) / count;
  measured.probe = Median(probe) / static_cast<double>(num_lines);
  return measured;
}

}  // namespace

int main(int argc, char** argv) {
  const uint64_t table_mb = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1024;
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 5;
  if (table_mb == 0 || table_mb > 65536 || rounds < 1) {
    std::fprintf(stderr, "usage: gather_bench [TABLE_MB 1..65536] [ROUNDS]\n");
    return 2;
  }
  const std::span<float> table = MakeTable(table_mb << 20);
  std::printf("table %lu MB, %lu random rows, median of %d rounds, lines asked for to %s\n\n",
              table_mb, kRowsPerCall * kCalls, rounds, gnnd::NameOf(gnnd::BestPrefetchLevel()));
  std::printf("%9s %10s %14s %14s %14s %9s %12s %12s %10s\n", "row bytes", "lines/row",
              "gather Mrow/s", "float16 Mrow/s", "memcpy Mrow/s", "speed-up", "gather ns/ln",
              "probe ns/ln", "of limit");
  std::string json = "{\"bench\":\"gather\",\"table_mb\":" + std::to_string(table_mb) +
                     ",\"rounds\":" + std::to_string(rounds) + ",\"rows\":[";
  bool first = true;
  for (const uint64_t dim : {uint64_t{100}, uint64_t{128}, uint64_t{256}, uint64_t{602}}) {
    const Measured m = Measure(table, dim, rounds);
    const double line = m.gather / m.lines_per_row;
    std::printf("%9lu %10.2f %14.2f %14.2f %14.2f %8.2fx %12.1f %12.1f %9.0f%%\n", m.row_bytes,
                m.lines_per_row, 1e-6 / m.gather, 1e-6 / m.half, 1e-6 / m.copy, m.copy / m.gather,
                line * 1e9, m.probe * 1e9, 100 * m.probe / line);
    std::array<char, 320> text{};
    std::snprintf(
        text.data(), text.size(),
        "%s{\"row_bytes\":%lu,\"lines_per_row\":%.3f,\"gather_rows_per_s\":%.0f,"
        "\"float16_rows_per_s\":%.0f,\"memcpy_rows_per_s\":%.0f,\"gather_ns_per_line\":%.2f,"
        "\"probe_ns_per_line\":%.2f}",
        first ? "" : ",", m.row_bytes, m.lines_per_row, 1 / m.gather, 1 / m.half, 1 / m.copy,
        line * 1e9, m.probe * 1e9);
    json += text.data();
    first = false;
  }
  std::printf("\n%s]}\n", json.c_str());
  return 0;
}
