#include "core/prepare/key_sorter.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <utility>

namespace gnnd {
namespace {

constexpr size_t kBlockKeys = 1 << 12;

}  // namespace

Status KeySorter::Settle() {
  std::sort(held_.begin(), held_.end());
  if (!file_.valid()) {
    constexpr mode_t kOwner = 0600;
    file_ = UniqueFd(open(folder_.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, kOwner));
    if (!file_.valid()) return SystemError(Code::kIo, "making a file in " + folder_);
  }
  if (!WriteAll(file_.get(), std::as_bytes(std::span(held_)))) {
    return SystemError(Code::kIo, "writing sorted keys");
  }
  ends_.push_back(size_);
  held_.clear();
  return Status::Ok();
}

Status KeySorter::Refill(Run* run, uint64_t most) const {
  run->keys.resize(std::min(most, run->end - run->at));
  run->place = 0;
  const auto bytes = std::as_writable_bytes(std::span(run->keys));
  for (size_t done = 0; done < bytes.size();) {
    const auto from = static_cast<off_t>(run->at * sizeof(uint64_t) + done);
    const ssize_t got = pread(file_.get(), bytes.data() + done, bytes.size() - done, from);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return SystemError(Code::kIo, "reading sorted keys");
    if (got == 0) return Status(Code::kIo, "a run of sorted keys was cut off");
    done += static_cast<size_t>(got);
  }
  run->at += run->keys.size();
  return Status::Ok();
}

Status KeySorter::Drain(const std::function<Status(std::span<const uint64_t>)>& take) {
  if (!ends_.empty() && !held_.empty()) GNND_TRY(Settle());
  size_ = 0;
  if (ends_.empty()) {
    std::sort(held_.begin(), held_.end());
    GNND_TRY(take(held_));
    held_.clear();
    return Status::Ok();
  }
  std::vector<uint64_t>().swap(held_);
  // All buffers together are as large as what was held.
  const uint64_t most = std::max<uint64_t>(1, held_max_ / ends_.size());
  std::vector<Run> runs(ends_.size());
  using Head = std::pair<uint64_t, size_t>;  // a run's next key, and the run
  std::vector<Head> heads;
  for (size_t i = 0; i < runs.size(); ++i) {
    runs[i].at = i == 0 ? 0 : ends_[i - 1];
    runs[i].end = ends_[i];
    GNND_TRY(Refill(&runs[i], most));
    heads.emplace_back(runs[i].keys.front(), i);
  }
  const auto later = std::greater<Head>();
  std::make_heap(heads.begin(), heads.end(), later);
  std::vector<uint64_t> block;
  block.reserve(kBlockKeys);
  while (!heads.empty()) {
    std::pop_heap(heads.begin(), heads.end(), later);
    const auto [key, from] = heads.back();
    block.push_back(key);
    if (block.size() == kBlockKeys) {
      GNND_TRY(take(block));
      block.clear();
    }
    Run& run = runs[from];
    if (++run.place == run.keys.size()) {
      if (run.at < run.end) GNND_TRY(Refill(&run, most));
      if (run.place == run.keys.size()) {
        heads.pop_back();
        continue;
      }
    }
    heads.back().first = run.keys[run.place];
    std::push_heap(heads.begin(), heads.end(), later);
  }
  ends_.clear();
  file_ = UniqueFd();
  return take(block);
}

}  // namespace gnnd
