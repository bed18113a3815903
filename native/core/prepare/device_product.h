#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/device/device.h"
#include "core/graph/dataset.h"

// Computes a hop's product on a device with memory of its own (core/device/device.h), with the same
// bits as core/kernels/spmm.h. The rows that it reads lie on the device, as many columns at a time
// as fit; topology and results pass through a part beside them that holds some rows of the product.
// If the whole topology fits, it stays there.

namespace gnnd {

struct PropagateDevice {
  std::string plugin;         // path of the device's plug-in; empty: the host's cores multiply
  uint64_t budget_bytes = 0;  // device memory to use; 0: all that is free
};

// How a product is divided.
struct ProductSizes {
  uint64_t columns = 0;     // columns on the device at a time
  uint64_t part_bytes = 0;  // topology, scales and results of some rows
};
// Divides `room` bytes of device memory; a pure function, so that it can be tested. kDeviceMemory
// where a single column, or the longest row, does not fit.
Result<ProductSizes> ProductSizesOf(uint64_t room, uint64_t num_nodes, uint64_t num_edges,
                                    uint64_t max_degree, uint64_t columns);

class DeviceProduct {
 public:
  // Opens the device for products of up to `columns` columns. Errors are those of loading a
  // plug-in, of opening a device, and of ProductSizesOf.
  static Result<std::unique_ptr<DeviceProduct>> Open(const PropagateDevice& options,
                                                     const Dataset& dataset, uint64_t columns,
                                                     uint32_t threads);

  struct Task {
    const float* from = nullptr;  // [num_nodes, columns]
    uint64_t columns = 0;
    const float* scale = nullptr;  // [num_nodes]
    bool self_loops = false;
    float* to = nullptr;  // [num_nodes, columns], undefined after an error
  };
  // Computes to = scale (A + I or A) from. `added` grows by edges times columns as they are done.
  Status Multiply(const Task& task, std::atomic<uint64_t>* added);

  uint64_t parts() const { return parts_.size(); }
  const ProductSizes& sizes() const { return sizes_; }

 private:
  struct Rows {
    uint64_t begin;
    uint64_t end;
  };
  // Columns of a task that are on the device together.
  struct Slice {
    uint64_t begin;
    uint64_t width;
  };
  // Addresses within part_.
  struct Places {
    uint32_t* indptr;
    uint32_t* index;
    float* scale;
    float* out;
  };

  DeviceProduct(const Dataset& dataset, uint32_t threads) : dataset_(dataset), threads_(threads) {}
  void DivideRows();
  uint64_t PartBytes(const Rows& rows, uint64_t width) const;
  uint64_t EdgesOf(const Rows& rows) const;
  Places PlacesOf(const Rows& rows) const;
  Status PutState(const Task& task, const Slice& slice);
  Status PutTopology(size_t part, const Places& places);
  Status Run(const Task& task, const Slice& slice, const Rows& rows, const Places& places);
  Status TakeRows(const Task& task, const Slice& slice, const Rows& rows, const Places& places);

  const Dataset& dataset_;
  const uint32_t threads_;
  std::unique_ptr<Device> device_;  // declared before the memory that it owns
  std::unique_ptr<DeviceStream> stream_;
  ProductSizes sizes_;
  std::vector<Rows> parts_;
  DeviceBuffer<float> state_;  // [num_nodes, sizes_.columns]
  DeviceBuffer<std::byte> part_;
  std::vector<float> staged_;  // some columns of rows, packed for the copy
  size_t held_ = SIZE_MAX;     // index of the part whose topology is in part_
};

}  // namespace gnnd
