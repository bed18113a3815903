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

// A hop's product on a device with memory of its own (core/device/device.h), with the bits of
// core/kernels/spmm.h. The rows that are read lie on the device, as many of their columns at a time
// as have room; the topology and what was summed go through a part beside them, rows of the product
// at a time. Where all of the topology has room it stays.

namespace gnnd {

struct PropagateDevice {
  std::string plugin;         // a file; empty: the host's cores multiply
  uint64_t budget_bytes = 0;  // of its memory; 0: what is free
};

// How a product is divided; a pure function, so that it can be tested.
struct ProductSizes {
  uint64_t columns = 0;     // at a time
  uint64_t part_bytes = 0;  // topology, scales and results of some rows
};
// Of `room` bytes of device memory. kDeviceMemory where not even one column, or the longest row,
// has room.
Result<ProductSizes> ProductSizesOf(uint64_t room, uint64_t num_nodes, uint64_t num_edges,
                                    uint64_t max_degree, uint64_t columns);

class DeviceProduct {
 public:
  // For products of up to `columns` columns. Errors are those of loading a plug-in and opening a
  // device, and of ProductSizesOf.
  static Result<std::unique_ptr<DeviceProduct>> Open(const PropagateDevice& options,
                                                     const Dataset& dataset, uint64_t columns,
                                                     uint32_t threads);

  struct Task {
    const float* from = nullptr;  // [num_nodes, columns]
    uint64_t columns = 0;
    const float* scale = nullptr;  // [num_nodes]
    bool self_loops = false;
    float* to = nullptr;  // [num_nodes, columns], of no meaning after an error
  };
  // to = scale (A + I or A) from. `added` grows by edges times columns as they are done.
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
  // Where things of a part lie in part_.
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
  std::unique_ptr<Device> device_;  // before what is its own
  std::unique_ptr<DeviceStream> stream_;
  ProductSizes sizes_;
  std::vector<Rows> parts_;
  DeviceBuffer<float> state_;  // [num_nodes, sizes_.columns]
  DeviceBuffer<std::byte> part_;
  std::vector<float> staged_;  // some columns of rows, packed
  size_t held_ = SIZE_MAX;     // whose topology is in part_
};

}  // namespace gnnd
