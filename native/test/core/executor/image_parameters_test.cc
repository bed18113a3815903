#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "core/image/image.h"
#include "job_harness.h"
#include "test/support/npy_files.h"

// Parameters that another job begins with, read from an image without its segment.

namespace gnnd::test {
namespace {

bool Equal(const std::vector<float>& found, std::span<const float> expected) {
  return std::ranges::equal(found, expected);
}

// An image of each epoch, written before its fifth batch.
std::vector<std::string> ImagesAtBatch4(const FakeJob& job, const TempFolder& folder) {
  Segment segment = MakeSegment(job);
  std::vector<std::string> paths;
  ThreadCrew crew(segment);
  crew.AddSampler(0);
  crew.AddTrainer(Role::kTrainer, 1, [&](FakeTrainWork& work) {
    work.before_gradient = [&](uint32_t, uint32_t batch) {
      if (batch == 4) paths.push_back(WriteImage(segment, folder.path(), "job")->path);
    };
  });
  GNND_CHECK(crew.Finish());
  return paths;
}

}  // namespace

TEST_CASE("an image gives its newest and its best parameters to whoever asks") {
  FakeJob job;
  job.staleness = 2;
  const TempFolder folder;
  const std::vector<std::string> paths = ImagesAtBatch4(job, folder);
  REQUIRE(paths.size() == job.epochs);
  CHECK(ReadImageParameters(paths[0], true).status().code() == Code::kNotFound);
  for (const std::string& path : paths) {
    Segment segment = MakeSegment(job);
    REQUIRE(LoadImage(segment, path, "job").ok());
    const Result<std::vector<float>> last = ReadImageParameters(path, false);
    REQUIRE(last.ok());
    CHECK(Equal(*last, segment.parameters(segment.Version())));
    const std::optional<uint64_t> evaluated = segment.LastEvaluated();
    if (!evaluated) continue;
    const Result<std::vector<float>> best = ReadImageParameters(path, true);
    REQUIRE(best.ok());
    CHECK(Equal(*best, segment.best(segment.epoch(*evaluated).best_buffer)));
  }
}

TEST_CASE("a damaged image gives none") {
  const FakeJob job;
  const TempFolder folder;
  const std::string path = ImagesAtBatch4(job, folder).back();
  const uint64_t size = std::filesystem::file_size(path);
  for (const uint64_t at : {uint64_t{0}, uint64_t{240}, size / 2, size - 1}) {
    std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
    file.seekg(static_cast<std::streamoff>(at));
    const auto byte = static_cast<char>(file.get() ^ 0x10);
    file.seekp(static_cast<std::streamoff>(at));
    file.put(byte);
    file.close();
    CHECK(ReadImageParameters(path, false).status().code() == Code::kDatasetCorrupt);
  }
  std::filesystem::resize_file(path, 100);
  CHECK(ReadImageParameters(path, false).status().code() == Code::kDatasetCorrupt);
}

}  // namespace gnnd::test
