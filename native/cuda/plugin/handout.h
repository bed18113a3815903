#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <thread>

#include "core/base/memfd.h"
#include "include/gnnd/device_plugin.h"

// How memory of one process's device gets to another process: as a descriptor, since memory that a
// descriptor stands for lives as long as anybody holds it or has it mapped, whatever becomes of the
// process that made it. Descriptors are given away through a local socket without a file, whose
// name is part of the handle: nobody can take a dead process's name, and a question that nobody
// answers is a handle of somebody who is gone.

namespace gnnd::cuda {

// Memory that may be opened elsewhere, as a device's library has it.
struct SharedMemory {
  int fd = -1;          // -1: it cannot be opened
  uint32_t device = 0;  // what the library wants to know beside it
  uint64_t bytes = 0;
};

// Gives descriptors to processes of the same user. Functions may be called by any thread.
class Handout {
 public:
  Handout() = default;
  Handout(const Handout&) = delete;
  Handout& operator=(const Handout&) = delete;
  ~Handout();

  // Takes the descriptor; what Fetch wants goes to *handle, which stays empty where nobody could
  // fetch it: without one, or where the host gives no socket.
  void Add(const void* memory, const SharedMemory& shared, gnnd_device_handle* handle);
  // Nobody gets it any more.
  void Remove(const void* memory);

 private:
  struct Entry {
    uint32_t key = 0;
    UniqueFd fd;
  };

  bool Start();
  void Serve();
  void Answer(int connection);

  std::mutex mutex_;
  std::string name_;  // "" before it is started
  UniqueFd listening_;
  std::thread thread_;
  std::atomic<bool> ending_ = false;
  uint32_t last_key_ = 0;
  std::map<const void*, Entry> entries_;
};

// The memory of a handle, with a descriptor of the caller's own: none where its process is gone, or
// does not answer within seconds.
SharedMemory Fetch(const gnnd_device_handle& handle, UniqueFd* fd);

}  // namespace gnnd::cuda
