#include <memory>
#include <string>

#include "core/executor/lender.h"
#include "core/executor/trainer_loop.h"
#include "node/core/bindings.h"
#include "node/run_on_thread.h"
#include "node/tables.h"

// The life of a Lender: a Trainer that lends batches to a user's process.

namespace gnnd::node {

struct LendOptions : ExecutorOptions {
  std::string socket;
};

template <>
inline constexpr auto kTable<LendOptions> =
    Extending(kTable<ExecutorOptions>.fields, "LendOptions",
              Field{"socket", &LendOptions::socket,
                    "Name in the abstract namespace, at which readers are awaited."});

namespace {

Result<LoopEnd> RunLender(const LendOptions& options) {
  Segment segment = GNND_VALUE(Segment::Attach(options.segment_fd, Access::kSlotsReadOnly));
  LenderOptions lending;
  lending.socket = options.socket;
  lending.features_path = options.dataset.features_path;
  // Of several types readers map the rows that they want.
  const bool is_typed = !options.dataset.schema.types.empty();
  if (lending.features_path.empty() && !is_typed) {
    lending.features_path =
        options.dataset.folder + "/" + std::string(FileName(DatasetFile::kFeatures));
  }
  std::unique_ptr<Lender> lender =
      GNND_VALUE(Lender::Create(segment, options.executor, std::move(lending)));
  return RunTrainerLoop(segment, options.executor, *lender, false);
}

Task<LoopEnd> LenderRun(const LendOptions& options) {
  return {[options] { return RunLender(options); }};
}

}  // namespace

void DefineLender(Subject& subject) {
  subject.Struct<LendOptions>().Function("lenderRun", LenderRun, {"options"});
}

}  // namespace gnnd::node
