#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/draw/batch_key.h"
#include "cuda/operators.h"
#include "cuda/plugin/device.h"
#include "cuda/sample_views.h"

// A device's sampler (device_kernels.h documents its config): memory for `depth` samples under way,
// one stream that computes and one that copies. Sizes stay on the device until a sample is done;
// then they are read, and exactly the used parts are copied into the slot.

namespace gnnd::cuda {

// Memory of a device, freed with its owner.
class Arena {
 public:
  Arena(gnnd_device& device, Failure* failure) : device_(device), failure_(failure) {}
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  ~Arena() {
    for (void* memory : held_) device_.Release(memory);
  }

  // Takes `count` elements; null after the first failure, whose number error() returns.
  template <typename T>
  T* Take(uint64_t count) {
    void* memory = nullptr;
    if (error_ == 0) {
      error_ = device_.Allocate(count * sizeof(T), GNND_PURPOSE_WORKSPACE, &memory, failure_);
    }
    if (memory != nullptr) held_.push_back(memory);
    return static_cast<T*>(memory);
  }
  int error() const { return error_; }

 private:
  gnnd_device& device_;
  Failure* failure_;
  int error_ = 0;
  std::vector<void*> held_;
};

}  // namespace gnnd::cuda

struct gnnd_device_sampler {
 public:
  using Failure = gnnd::cuda::Failure;
  using Runtime = gnnd::cuda::Runtime;

  gnnd_device_sampler(gnnd_device& device, const gnnd_device_sampler_config& config,
                      Failure* failure);
  gnnd_device_sampler(const gnnd_device_sampler&) = delete;
  gnnd_device_sampler& operator=(const gnnd_device_sampler&) = delete;
  ~gnnd_device_sampler();

  gnnd_device& device() { return device_; }
  // Fails for a bad argument, or when memory runs out; the object may then only be destroyed.
  int Create(Failure* failure);
  int Start(uint32_t epoch, uint32_t batch, Failure* failure);
  int Finish(std::byte* slot, gnnd_device_sample_report* report, Failure* failure);

 private:
  // The memory of one sample.
  struct Workspace {
    gnnd::cuda::SampleBuffers buffers;
    uint32_t* seeds = nullptr;
    uint32_t num_seeds = 0;
    std::array<gnnd::cuda::HopOut, gnnd::cuda::kMaxSampleHops> outs{};
    uint32_t* ranks = nullptr;                 // if the config has ranks
    gnnd::cuda::SampleState* state = nullptr;  // pinned copy of the device's state
    Runtime::Event begun = nullptr;
    Runtime::Event computed = nullptr;
    Runtime::Event marking = nullptr;
    Runtime::Event marked = nullptr;
    Runtime::Event copied = nullptr;
  };
  // One section of a record.
  struct Section {
    const void* from;
    uint64_t at;
    uint64_t bytes;
  };

  std::string Problem() const;
  bool is_shared() const { return config_.expansion == 2; }
  bool is_weighted() const { return config_.algorithm == GNND_SAMPLE_WEIGHTED; }
  void TakeTable();
  void TakeWorkspace(Workspace* workspace);
  int MakeEvents(Workspace* workspace);
  int ClearTable();
  gnnd::cuda::HopTask TaskOf(const Workspace& workspace, uint32_t hop) const;
  void EnqueueHop(const gnnd::BatchKey& key, const gnnd::cuda::HopTask& task);
  int Mark(const Workspace& workspace);
  std::vector<Section> SectionsOf(const Workspace& workspace) const;
  int CopyOut(const Workspace& workspace, std::byte* slot, gnnd_device_sample_report* report,
              Failure* failure);

  gnnd_device& device_;
  Runtime& runtime_;
  gnnd_device_sampler_config config_;
  uint32_t max_edges_ = 0;
  uint32_t max_rows_ = 0;
  gnnd::cuda::Arena arena_;
  gnnd::cuda::NodeTable table_;
  uint64_t table_slots_ = 0;
  uint32_t* train_nodes_ = nullptr;
  Runtime::Stream compute_ = nullptr;
  Runtime::Stream copy_ = nullptr;
  gnnd::cuda::Queue queue_;
  // For work that needs a sample's sizes, while the next sample is computed.
  gnnd::cuda::Queue copy_queue_;
  std::vector<Workspace> workspaces_;
  uint64_t started_ = 0;
  uint64_t finished_ = 0;
};
