#include "train/work/prediction_stream.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>

#include "core/base/clock.h"
#include "core/base/memfd.h"
#include "core/executor/predictions.h"
#include "core/graph/npy.h"
#include "train/tasks/task.h"

namespace gnnd {
namespace {

constexpr uint64_t kProgressPeriodNs = 200'000'000;
constexpr uint64_t kFrameBytes = uint64_t{1} << 18;

class FrameWriter {
 public:
  explicit FrameWriter(int fd) : fd_(fd) {}

  Status Progress(double share) {
    return Frame(FrameKind::kProgress, std::as_bytes(std::span(&share, 1)));
  }

  // Begins a .npy file of `count` rows; its elements follow as Data.
  Status Npy(std::string_view name, NpyType type, std::span<const uint64_t> shape) {
    const std::string header = NpyHeader(type, shape);
    uint64_t bytes = BytesOf(type);
    for (const uint64_t extent : shape) bytes *= extent;
    bytes += header.size();
    std::string payload(sizeof bytes, '\0');
    std::memcpy(payload.data(), &bytes, sizeof bytes);
    payload += name;
    GNND_TRY(Frame(FrameKind::kFile, std::as_bytes(std::span(payload.data(), payload.size()))));
    return Data(std::as_bytes(std::span(header.data(), header.size())));
  }

  Status Data(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const auto part = bytes.first(std::min<uint64_t>(bytes.size(), kFrameBytes));
      GNND_TRY(Frame(FrameKind::kData, part));
      bytes = bytes.subspan(part.size());
    }
    return Status::Ok();
  }

  // Sends uint32 values as int64.
  Status Widened(std::span<const uint32_t> values) {
    std::array<int64_t, 4096> wide;
    for (size_t from = 0; from < values.size(); from += wide.size()) {
      const auto part = values.subspan(from, std::min(wide.size(), values.size() - from));
      std::copy(part.begin(), part.end(), wide.begin());
      GNND_TRY(Data(std::as_bytes(std::span(wide.data(), part.size()))));
    }
    return Status::Ok();
  }

 private:
  Status Frame(FrameKind kind, std::span<const std::byte> payload) {
    const std::array<uint32_t, 2> head = {static_cast<uint32_t>(kind),
                                          static_cast<uint32_t>(payload.size())};
    GNND_TRY(Write(std::as_bytes(std::span(head))));
    return Write(payload);
  }

  Status Write(std::span<const std::byte> bytes) const {
    if (WriteAll(fd_, bytes)) return Status::Ok();
    if (errno == EPIPE) return Status(Code::kAborted, "nobody reads the predictions any more");
    return SystemError(Code::kIo, "writing predictions");
  }

  int fd_;
};

}  // namespace

Status StreamPredictions(TorchWork* work, const PredictionRequest& request) {
  if (request.parameters.size() != work->manifest().num_floats) {
    return Status(Code::kInvalidArgument, "the model has " +
                                              std::to_string(work->manifest().num_floats) +
                                              " parameters (padding included), not " +
                                              std::to_string(request.parameters.size()));
  }
  FrameWriter writer(request.fd);
  const uint64_t rows = request.nodes.size();
  if (!request.all_nodes) {
    GNND_TRY(writer.Npy("nodes.npy", NpyType::kInt64, std::array{rows}));
    GNND_TRY(writer.Widened(request.nodes));
  }
  GNND_TRY(
      writer.Npy("logits.npy", NpyType::kFloat32, std::array{rows, uint64_t{request.classes}}));
  const Predictions kind(TaskOf(request.task), request.classes);
  std::vector<std::byte> predictions;
  predictions.reserve(rows * kind.bytes_per_node());
  Status written;
  uint64_t told_ns = 0;
  const auto alive = [&] {
    const uint64_t now_ns = MonotonicNs();
    if (now_ns - told_ns < kProgressPeriodNs) return true;
    told_ns = now_ns;
    written = writer.Progress(work->predicted());
    return written.ok();
  };
  const auto take = [&](std::span<const uint32_t> nodes, const float* logits) {
    const std::span<const float> values(logits, nodes.size() * request.classes);
    kind.Append(values, &predictions);
    return writer.Data(std::as_bytes(values));
  };
  const Status predicted = work->Predict(request.parameters, request.nodes, alive, take);
  GNND_TRY(written);
  GNND_TRY(predicted);
  GNND_TRY(writer.Npy("predictions.npy", kind.rule().predicted_type(), kind.ShapeOf(rows)));
  GNND_TRY(writer.Data(predictions));
  return writer.Progress(1);
}

}  // namespace gnnd
