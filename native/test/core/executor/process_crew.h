#pragma once

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <vector>

#include "core/base/clock.h"
#include "core/base/failpoint.h"
#include "device_work.h"
#include "job_harness.h"

// Executors as child processes, and a parent that does what the daemon does with the dead: reap,
// reclaim, start again.

namespace gnnd::test {

struct ChildPlan {
  Role role = Role::kSampler;
  uint32_t device = 0;
  const char* failpoint = "";  // where it dies ("" = nowhere); its successor does not
  int nth = 1;
  bool stop_there = false;  // SIGSTOP instead of SIGKILL; the parent kills it later
  std::function<void(Segment&, FakeSampleWork*, FakeTrainWork*)> prepare = {};
};

class ProcessCrew {
 public:
  explicit ProcessCrew(Segment& segment) : segment_(segment) {
    // Blocked, so that sigtimedwait can wait for it.
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGCHLD);
    sigprocmask(SIG_BLOCK, &signals, &old_mask_);
  }
  ~ProcessCrew() {
    for (const Child& child : children_) {
      kill(child.pid, SIGKILL);
      waitpid(child.pid, nullptr, 0);
    }
    sigprocmask(SIG_SETMASK, &old_mask_, nullptr);
  }

  void Start(const ChildPlan& plan) {
    const Result<ExecutorId> id = segment_.RegisterExecutor(plan.role, plan.device);
    GNND_CHECK(id.ok());
    const pid_t pid = fork();
    GNND_CHECK(pid >= 0);
    if (pid == 0) _exit(Run(plan, *id));
    children_.push_back(Child{pid, *id, plan});
  }

  // Until all children have ended well. False when nothing happened for so long.
  bool Supervise(uint64_t patience_ns = 20 * kNsPerSecond) {
    while (!children_.empty()) {
      if (ReapOne()) continue;
      sigset_t signals;
      sigemptyset(&signals);
      sigaddset(&signals, SIGCHLD);
      const timespec timeout = ToTimespec(patience_ns);
      if (sigtimedwait(&signals, nullptr, &timeout) < 0 && errno == EAGAIN) return false;
    }
    return true;
  }

  Segment& segment() { return segment_; }
  int kills() const { return kills_; }
  int failures() const { return failures_; }  // loops that returned an error
  ReclaimReport reclaimed() const { return reclaimed_; }
  bool respawn = true;
  uint32_t depth = 1;      // of Samplers that are started from now on
  bool prefetch = false;   // of Trainers, likewise
  bool on_device = false;  // likewise: they keep copies of their own
  // Likewise: what they do; null: the usual.
  std::function<std::unique_ptr<FakeTrainWork>(Segment&, FakeScratch*)> make_trainer;
  // What happens to a stopped child: the default kills it.
  std::function<void(pid_t, ExecutorId)> on_stopped = [](pid_t pid, ExecutorId) {
    kill(pid, SIGKILL);
  };

 private:
  struct Child {
    pid_t pid;
    ExecutorId id;
    ChildPlan plan;
  };

  int Run(const ChildPlan& plan, ExecutorId id) {
    std::function<void()> action;
    if (plan.stop_there) action = [] { raise(SIGSTOP); };
    failpoint::Arm(plan.failpoint, plan.nth, action);
    const ShakenSchedule shaken;
    const bool samples = plan.role == Role::kSampler;
    Result<Segment> mine =
        Segment::Attach(segment_.fd(), samples ? Access::kModelReadOnly : Access::kSlotsReadOnly);
    if (!mine.ok()) return 3;
    if (samples) {
      FakeSampleWork work(*mine);
      work.work_depth = depth;
      if (plan.prepare) plan.prepare(*mine, &work, nullptr);
      return RunSamplerLoop(*mine, id, work).ok() ? 0 : 2;
    }
    if (on_device) {
      DeviceTrainWork work(&scratch_);
      work.batches_per_epoch = mine->config().batches_per_epoch;
      return RunTrainerLoop(*mine, id, work, prefetch).ok() && work.torn == 0 ? 0 : 2;
    }
    const auto work =
        make_trainer ? make_trainer(*mine, &scratch_) : std::make_unique<FakeTrainWork>(&scratch_);
    if (plan.prepare) plan.prepare(*mine, nullptr, work.get());
    return RunTrainerLoop(*mine, id, *work, prefetch).ok() && work->torn == 0 ? 0 : 2;
  }

  // Deals with one child that ended or stopped, if there is one.
  bool ReapOne() {
    for (size_t i = 0; i < children_.size(); ++i) {
      int status = 0;
      const Child child = children_[i];
      if (waitpid(child.pid, &status, WNOHANG | WUNTRACED) != child.pid) continue;
      if (WIFSTOPPED(status)) {
        on_stopped(child.pid, child.id);
        return true;
      }
      children_.erase(children_.begin() + static_cast<std::ptrdiff_t>(i));
      AfterDeath(child, status);
      return true;
    }
    return false;
  }

  void AfterDeath(const Child& child, int status) {
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return;
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) {
      ++kills_;
    } else {
      ++failures_;
    }
    const Result<ReclaimReport> report = segment_.Reclaim(child.id.incarnation);
    GNND_CHECK(report.ok());
    reclaimed_.claimed += report->claimed;
    reclaimed_.taken += report->taken;
    reclaimed_.evaluations += report->evaluations;
    reclaimed_.turns += report->turns;
    if (!respawn) return;
    ChildPlan successor = child.plan;
    successor.failpoint = "";
    Start(successor);
  }

  Segment& segment_;
  FakeScratch scratch_;
  sigset_t old_mask_{};
  std::vector<Child> children_;
  int kills_ = 0;
  int failures_ = 0;
  ReclaimReport reclaimed_;
};

}  // namespace gnnd::test
