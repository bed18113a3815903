#include "train/work/prediction_stream.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>
#include <map>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "core/graph/npy.h"
#include "core/kernels/loss.h"
#include "test/support/record_builder.h"

namespace gnnd {
namespace {

constexpr uint32_t kNodes = 50;
constexpr uint32_t kClasses = 3;

// A GraphSAGE on a ring with its second neighbours, with its initial parameters.
struct Trained {
  Trained() {
    std::vector<std::vector<uint32_t>> rows(kNodes);
    for (uint32_t v = 0; v < kNodes; ++v) {
      for (const uint32_t step : {1U, 2U}) rows[v].push_back((v + step) % kNodes);
      for (uint32_t c = 0; c < 4; ++c) {
        features.push_back(static_cast<float>((v * 7 + c * 3) % 11) - 5);
      }
    }
    graph = test::GraphOf(rows);
    options.model.in_dim = 4;
    options.model.hidden_dim = 8;
    options.model.out_dim = kClasses;
    options.features = RowTable(features, options.model.in_dim);
    options.targets.labels = labels;
    options.topology = graph.view();
    auto created = TorchWork::Create(options);
    REQUIRE(created.ok());
    work = std::move(*created);
    parameters.resize(work->manifest().num_floats);
    work->InitParameters(parameters);
  }

  std::vector<float> Logits(const std::vector<uint32_t>& nodes) {
    std::vector<float> logits;
    const auto append = [&](std::span<const uint32_t> part, const float* values) {
      logits.insert(logits.end(), values, values + part.size() * kClasses);
      return Status::Ok();
    };
    REQUIRE(work->Predict(parameters, nodes, [] { return true; }, append).ok());
    return logits;
  }

  test::TestGraph graph;
  std::vector<float> features;
  std::vector<int32_t> labels = std::vector<int32_t>(kNodes, -1);
  TrainOptions options;
  std::unique_ptr<TorchWork> work;
  std::vector<float> parameters;
};

struct Received {
  std::vector<std::string> names;
  std::map<std::string, uint64_t> promised;  // sizes
  std::map<std::string, std::string> files;
  std::vector<double> progress;
};

Received FramesOf(int fd) {
  std::string bytes;
  std::array<char, 4096> buffer;
  for (ssize_t got; (got = read(fd, buffer.data(), buffer.size())) > 0;) {
    bytes.append(buffer.data(), static_cast<size_t>(got));
  }
  Received received;
  size_t at = 0;
  while (at < bytes.size()) {
    std::array<uint32_t, 2> head;
    REQUIRE(at + sizeof head <= bytes.size());
    std::memcpy(head.data(), bytes.data() + at, sizeof head);
    const std::string payload = bytes.substr(at + sizeof head, head[1]);
    REQUIRE(payload.size() == head[1]);
    at += sizeof head + payload.size();
    switch (static_cast<FrameKind>(head[0])) {
      case FrameKind::kProgress: {
        double share = -1;
        std::memcpy(&share, payload.data(), sizeof share);
        received.progress.push_back(share);
        break;
      }
      case FrameKind::kFile:
        received.names.push_back(payload.substr(8));
        std::memcpy(&received.promised[received.names.back()], payload.data(), 8);
        break;
      case FrameKind::kData:
        received.files[received.names.back()] += payload;
        break;
    }
  }
  return received;
}

// Streams the predictions of `nodes` through a pipe.
Received Stream(Trained* trained, const std::vector<uint32_t>& nodes, bool all) {
  std::array<int, 2> ends;
  REQUIRE(pipe(ends.data()) == 0);
  Status status;
  std::thread writer([&] {
    status = StreamPredictions(trained->work.get(), {trained->parameters, nodes, all, kClasses,
                                                     Task::kClassification, ends[1]});
    close(ends[1]);
  });
  Received received = FramesOf(ends[0]);
  writer.join();
  close(ends[0]);
  CHECK(status.ok());
  return received;
}

template <typename T>
std::string NpyOf(NpyType type, const std::vector<uint64_t>& shape, const std::vector<T>& values) {
  std::string file = NpyHeader(type, shape);
  file.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
  return file;
}

TEST_CASE("a stream of predictions holds the nodes, their logits and the largest of each") {
  Trained trained;
  for (const bool all : {false, true}) {
    std::vector<uint32_t> nodes(kNodes);
    std::iota(nodes.begin(), nodes.end(), 0U);
    if (!all) nodes = {1, 8, 30, 31, 49};
    const uint64_t count = nodes.size();
    const std::vector<float> logits = trained.Logits(nodes);
    std::vector<int64_t> classes;
    for (size_t i = 0; i < count; ++i) {
      classes.push_back(ArgMax(std::span(logits).subspan(i * kClasses, kClasses)));
    }
    Received received = Stream(&trained, nodes, all);
    std::vector<std::string> names = {"nodes.npy", "logits.npy", "predictions.npy"};
    if (all) names.erase(names.begin());
    CHECK(received.names == names);
    for (const auto& [name, file] : received.files) CHECK(received.promised[name] == file.size());
    CHECK(received.files["logits.npy"] == NpyOf(NpyType::kFloat32, {count, kClasses}, logits));
    CHECK(received.files["predictions.npy"] == NpyOf(NpyType::kInt64, {count}, classes));
    if (!all) {
      const std::vector<int64_t> ids(nodes.begin(), nodes.end());
      CHECK(received.files["nodes.npy"] == NpyOf(NpyType::kInt64, {count}, ids));
    }
    CHECK(std::is_sorted(received.progress.begin(), received.progress.end()));
    CHECK(received.progress.back() == 1);
  }
}

TEST_CASE("a stream ends when its reader is gone, and refuses parameters of another model") {
  std::signal(SIGPIPE, SIG_IGN);
  Trained trained;
  std::array<int, 2> ends;
  REQUIRE(pipe(ends.data()) == 0);
  close(ends[0]);
  PredictionRequest request{trained.parameters,    {1, 2}, false, kClasses,
                            Task::kClassification, ends[1]};
  CHECK(StreamPredictions(trained.work.get(), request).code() == Code::kAborted);
  request.parameters = request.parameters.first(16);
  CHECK(StreamPredictions(trained.work.get(), request).code() == Code::kInvalidArgument);
  close(ends[1]);
}

}  // namespace
}  // namespace gnnd
