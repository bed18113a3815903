#include "core/ledger/trace.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <span>
#include <string>

#include "core/ledger/layout.h"

namespace gnnd {

LedgerTrace LedgerTrace::Of(int segment_fd) {
  LedgerTrace trace;
  const char* folder = std::getenv("GNND_LEDGER_TRACE");
  struct stat info{};
  if (folder == nullptr || fstat(segment_fd, &info) != 0) return trace;
  const std::string path = std::string(folder) + '/' + std::to_string(info.st_ino) + ".trace";
  trace.file_ = UniqueFd(open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600));
  return trace;
}

void LedgerTrace::Created(const SegmentConfig& config) const {
  Note(Kind::kCreated, 0,
       {config.batches_per_epoch, config.epochs, config.group, config.staleness, config.num_slots,
        (config.born_ready ? 1U : 0U) + (config.eval_chunks > 0 ? 2U : 0U), config.evaluate_every});
}

void LedgerTrace::Write(Kind kind, uint32_t owner,
                        const std::array<uint64_t, kNumbers>& numbers) const {
  Record record{static_cast<uint32_t>(kind), owner, {}};
  std::copy(numbers.begin(), numbers.end(), record.numbers);
  // A full disk cuts the trace, which its reader can see.
  static_cast<void>(WriteAll(file_.get(), std::as_bytes(std::span(&record, 1))));
}

}  // namespace gnnd
