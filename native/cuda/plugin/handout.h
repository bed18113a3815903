#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <thread>

#include "core/base/memfd.h"
#include "include/gnnd/device_plugin.h"

// How another process gets memory of this process's device: as a descriptor, because the memory
// behind it lives as long as anybody holds or maps it, whatever becomes of the process that made
// it. Descriptors are handed out through a local socket without a file, whose name is part of the
// handle: nobody can take over a dead process's name, and a handle that nobody answers for belongs
// to a process that is gone.

namespace gnnd::cuda {

// Memory that other processes may open, as a device's library describes it.
struct SharedMemory {
  int fd = -1;          // -1: it cannot be opened
  uint32_t device = 0;  // the library's number for the device
  uint64_t bytes = 0;
};

// Hands descriptors to processes of the same user. Thread-safe.
class Handout {
 public:
  Handout() = default;
  Handout(const Handout&) = delete;
  Handout& operator=(const Handout&) = delete;
  ~Handout();

  // Takes over the descriptor and writes the handle for Fetch; the handle stays empty if nobody
  // could fetch it: without a descriptor, or if the host refuses a socket.
  void Add(const void* memory, const SharedMemory& shared, gnnd_device_handle* handle);
  // Ends the handing out of this memory.
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
  std::string name_;  // "" before the socket is made
  UniqueFd listening_;
  std::thread thread_;
  std::atomic<bool> ending_ = false;
  uint32_t last_key_ = 0;
  std::map<const void*, Entry> entries_;
};

// The memory of a handle, with a new descriptor of the caller's own; none if its process is gone or
// does not answer within seconds.
SharedMemory Fetch(const gnnd_device_handle& handle, UniqueFd* fd);

}  // namespace gnnd::cuda
