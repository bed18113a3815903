#include "explore.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "segment_model.h"

// Every order in which the executors of a small job can act and die. What the real code does in
// each situation is rules_test.cc's; this shows that the rules suffice, and that each is needed.

namespace gnnd::test {
namespace {

// M batches in each of so many epochs.
ModelJob JobOf(uint64_t batches, uint64_t epochs, uint64_t group, uint64_t staleness,
               uint64_t slots) {
  ModelJob job;
  job.shape = {batches, epochs, group, staleness, slots};
  return job;
}

Exploration Explore(const ModelJob& job) { return Explorer(SegmentModel(job)).Run(); }

std::string NameOf(const ModelJob& job) {
  const JobShape& shape = job.shape;
  return "M=" + std::to_string(shape.batches_per_epoch) +
         " epochs=" + std::to_string(shape.epochs) + " G=" + std::to_string(shape.group) +
         " S=" + std::to_string(shape.staleness) + " slots=" + std::to_string(shape.num_slots) +
         " bytes=" + std::to_string(job.bytes) + " samplers=" + std::to_string(job.samplers) +
         " depth=" + std::to_string(job.depth) + " trainers=" + std::to_string(job.trainers) +
         (job.standby ? " standby" : "") + (job.ahead ? " ahead" : "") +
         " deaths=" + std::to_string(job.deaths) + ' ' + job.dropped;
}

}  // namespace

TEST_CASE("with two claims in hand no order of steps and deaths loses, repeats or tears a batch") {
  std::vector<ModelJob> jobs;
  for (uint32_t bits = 0; bits < 96; ++bits) {
    const uint64_t group = 1 + bits % 2;
    const uint64_t staleness = bits / 32;
    if ((staleness + 1) * group > SegmentModel::kMaxPlaces) continue;
    ModelJob job = JobOf(3, 2, group, staleness, bits & 2 ? 3 : 2);
    job.standby = (bits & 4) != 0;
    job.ahead = (bits & 8) != 0;
    job.bytes = bits & 16 ? 1 : 4;
    jobs.push_back(job);
    if (!job.ahead) continue;
    // Longer, and with another death.
    job.shape.batches_per_epoch = 5;
    job.shape.epochs = 1;
    jobs.push_back(job);
    if (job.bytes == 1 || staleness != group - 1) continue;
    job.deaths = 2;
    jobs.push_back(job);
    job.deaths = 1;
    job.trainers = 3;
    jobs.push_back(job);
  }
  uint64_t states = 0;
  for (const ModelJob& job : jobs) {
    INFO(NameOf(job));
    const Exploration found = Explore(job);
    states += found.states;
    if (std::getenv("GNND_SHOW")) MESSAGE(NameOf(job), ": ", found.states, " states");
    CHECK_MESSAGE(found.violation.empty(), found.violation);
    CHECK_MESSAGE(found.stuck == 0, "stuck after", found.stuck_after);
  }
  MESSAGE(states, " states");
}

TEST_CASE("each rule of the segment is needed") {
  struct Dropped {
    const char* rule;
    ModelJob job;
  };
  const ModelJob plain = JobOf(3, 1, 1, 0, 2);
  ModelJob tight = plain;
  tight.bytes = 1;
  ModelJob turns = plain;
  turns.standby = true;
  ModelJob one_trainer = plain;
  one_trainer.trainers = 1;
  ModelJob one_sampler = turns;
  one_sampler.samplers = 1;
  ModelJob alone = turns;  // the standby trains, and nobody else
  alone.trainers = 1;
  const ModelJob two_epochs = JobOf(3, 2, 1, 0, 3);
  const Dropped dropped[] = {
      {"slot-window", plain},
      {"reclaim-takes-both", plain},
      {"room-before-claim", tight},
      {"head-group-exempt", tight},
      {"waits-empty-handed", tight},
      {"lends-empty-handed", turns},
      {"due-version", plain},
      {"evaluation-barrier", two_epochs},
      {"give-back-for-lower", one_trainer},
      {"give-back-for-evaluation", two_epochs},
      {"reap-before-reclaim", plain},
      {"owner-is-incarnation", plain},
      {"turn-holder-changes", turns},
      {"turn-repair", one_sampler},
      {"standby-gives-back-turn", alone},
      {"gone-sampler-leaves-turn", alone},
  };
  for (const Dropped& it : dropped) {
    ModelJob job = it.job;
    INFO(NameOf(job), it.rule);
    const Exploration kept = Explore(job);
    CHECK_MESSAGE(kept.violation.empty(), kept.violation);
    CHECK_MESSAGE(kept.stuck == 0, "stuck after", kept.stuck_after);
    job.dropped = it.rule;
    const Exploration found = Explore(job);
    if (std::getenv("GNND_SHOW")) {
      MESSAGE(it.rule, ": ", found.states, " states; ", found.violation, " stuck: ", found.stuck,
              found.stuck_after);
    }
    CHECK_FALSE(found.good());
  }
  // A queue smaller than a group.
  CHECK_FALSE(Explore(JobOf(3, 1, 2, 0, 1)).good());
}

}  // namespace gnnd::test
