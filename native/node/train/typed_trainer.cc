#include <cstdint>
#include <memory>
#include <vector>

#include "core/executor/trainer_loop.h"
#include "node/train/trainer_options.h"
#include "node/train/typed_input_files.h"
#include "train/work/torch_work.h"

// The life of a Trainer over several types of nodes.

namespace gnnd::node {

Result<LoopEnd> RunTypedTrainer(const TrainerOptions& options) {
  const TypedInputFiles files =
      GNND_VALUE(TypedInputFiles::Open(options.dataset, options.topology_fd));
  const TypedDataset& dataset = files.dataset;
  Segment segment = GNND_VALUE(Segment::Attach(options.segment_fd, Access::kSlotsReadOnly));
  const bool predicts = !options.prediction.place.folder.empty();
  TypedOptions typed = files.Options();
  TrainOptions& own = typed.own;
  own.model = options.model;
  own.random_seed = options.random_seed.value;
  own.optimizer = options.optimizer;
  own.precision = options.precision;
  own.threads = options.threads;
  own.features_on_disk = options.cache.features_on_disk;
  const std::vector<float> weights =
      predicts ? std::vector<float>()
               : WeightsOf(options.class_weighting, own.targets, dataset.train());
  own.targets.weights = weights;
  own.targets.decides = options.evaluation.decides;
  own.targets.ranks = segment.config().kept_bytes > 0;
  own.val_nodes = dataset.val();
  own.test_nodes = dataset.test();
  // Descriptor 0 means that there is no scratch.
  if (options.evaluation.scratch_fd != 0) own.eval_place.fd = options.evaluation.scratch_fd;
  if (predicts) GNND_TRY(PredictInstead(options, dataset, &own));
  std::unique_ptr<TorchWork> work = GNND_VALUE(TorchWork::Create(typed));
  return RunTrainerLoop(segment, options.executor, *work, options.prefetch);
}

}  // namespace gnnd::node
