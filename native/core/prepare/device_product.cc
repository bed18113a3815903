#include "core/prepare/device_product.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "core/base/mapping.h"
#include "core/prepare/row_files.h"

namespace gnnd {
namespace {

constexpr uint64_t kLine = 256;  // alignment within the device's arena
// Large enough that a launch and its copies cost little beside the work.
constexpr uint64_t kPartBytes = uint64_t{256} << 20;
// Bytes of rows packed at a time when only some of their columns are copied.
constexpr uint64_t kStagedBytes = uint64_t{16} << 20;
constexpr uint64_t kGrainRows = 512;

// Bytes of a part of the product: row pointers, edges, scales and sums, each aligned to a line.
uint64_t BytesOfPart(uint64_t rows, uint64_t edges, uint64_t columns) {
  return RoundUp(4 * (rows + 1), kLine) + RoundUp(4 * edges, kLine) + RoundUp(4 * rows, kLine) +
         RoundUp(4 * rows * columns, kLine);
}

uint64_t MaxDegree(std::span<const int64_t> indptr) {
  int64_t most = 0;
  for (size_t v = 0; v + 1 < indptr.size(); ++v) most = std::max(most, indptr[v + 1] - indptr[v]);
  return static_cast<uint64_t>(most);
}

}  // namespace

Result<ProductSizes> ProductSizesOf(uint64_t room, uint64_t num_nodes, uint64_t num_edges,
                                    uint64_t max_degree, uint64_t columns) {
  constexpr uint64_t kMostEdges = std::numeric_limits<uint32_t>::max();
  const auto state = [&](uint64_t width) { return RoundUp(4 * num_nodes * width, kLine); };
  const uint64_t whole = BytesOfPart(num_nodes, num_edges, columns);
  if (num_edges <= kMostEdges && state(columns) + whole <= room) {
    return ProductSizes{columns, whole};
  }
  for (uint64_t width = columns; width > 0; --width) {
    const uint64_t least = BytesOfPart(1, max_degree, width);
    // Small parts mean many launches, and so do few columns.
    const uint64_t wanted = std::max(least, width > 1 ? std::min(kPartBytes, room / 4) : 0);
    if (state(width) + RoundUp(wanted, kLine) > room) continue;
    const uint64_t left = (room - state(width)) / kLine * kLine;
    return ProductSizes{width, std::max(least, std::min(kPartBytes, left))};
  }
  return Status(Code::kDeviceMemory, "a column of " + std::to_string(num_nodes) +
                                         " nodes and a row of " + std::to_string(max_degree) +
                                         " edges have no room in " + std::to_string(room) +
                                         " bytes of the device's memory");
}

Result<std::unique_ptr<DeviceProduct>> DeviceProduct::Open(const PropagateDevice& options,
                                                           const Dataset& dataset, uint64_t columns,
                                                           uint32_t threads) {
  const DevicePlugin* const plugin = GNND_VALUE(DevicePlugin::Load(options.plugin));
  std::unique_ptr<DeviceProduct> made(new DeviceProduct(dataset, threads));
  made->device_ = GNND_VALUE(Device::Open(*plugin, {0, options.budget_bytes}));
  const Device& device = *made->device_;
  GNND_TRY(device.Needs(device.table().spmm, "spmm"));
  const gnnd_device_memory memory = GNND_VALUE(device.Memory());
  const uint64_t room = std::min(memory.budget_bytes, memory.free_bytes);
  made->sizes_ = GNND_VALUE(ProductSizesOf(room, dataset.num_nodes(), dataset.num_edges(),
                                           MaxDegree(dataset.indptr()), columns));
  made->stream_ = GNND_VALUE(DeviceStream::Create(device));
  made->state_ = GNND_VALUE(DeviceBuffer<float>::Allocate(
      device, dataset.num_nodes() * made->sizes_.columns, DevicePurpose::kWorkspace));
  made->part_ = GNND_VALUE(DeviceBuffer<std::byte>::Allocate(device, made->sizes_.part_bytes,
                                                             DevicePurpose::kWorkspace));
  made->DivideRows();
  return made;
}

uint64_t DeviceProduct::EdgesOf(const Rows& rows) const {
  const std::span<const int64_t> indptr = dataset_.indptr();
  return static_cast<uint64_t>(indptr[rows.end] - indptr[rows.begin]);
}

uint64_t DeviceProduct::PartBytes(const Rows& rows, uint64_t width) const {
  return BytesOfPart(rows.end - rows.begin, EdgesOf(rows), width);
}

void DeviceProduct::DivideRows() {
  Rows rows{0, 0};
  while (rows.end < dataset_.num_nodes()) {
    Rows more{rows.begin, rows.end + 1};
    const bool fits = PartBytes(more, sizes_.columns) <= sizes_.part_bytes &&
                      EdgesOf(more) <= std::numeric_limits<uint32_t>::max();
    if (fits || rows.end == rows.begin) {
      rows = more;
      continue;
    }
    parts_.push_back(rows);
    rows.begin = rows.end;
  }
  if (rows.end > rows.begin) parts_.push_back(rows);
}

DeviceProduct::Places DeviceProduct::PlacesOf(const Rows& rows) const {
  std::byte* at = part_.data();
  const auto take = [&at](uint64_t bytes) {
    std::byte* const place = at;
    at += RoundUp(bytes, kLine);
    return place;
  };
  const uint64_t count = rows.end - rows.begin;
  Places places{};
  places.indptr = reinterpret_cast<uint32_t*>(take(4 * (count + 1)));
  places.index = reinterpret_cast<uint32_t*>(take(4 * EdgesOf(rows)));
  places.scale = reinterpret_cast<float*>(take(4 * count));
  places.out = reinterpret_cast<float*>(at);
  return places;
}

Status DeviceProduct::Multiply(const Task& task, std::atomic<uint64_t>* added) {
  for (uint64_t begin = 0; begin < task.columns; begin += sizes_.columns) {
    const Slice slice{begin, std::min(sizes_.columns, task.columns - begin)};
    GNND_TRY(PutState(task, slice));
    for (size_t part = 0; part < parts_.size(); ++part) {
      const Rows& rows = parts_[part];
      const Places places = PlacesOf(rows);
      GNND_TRY(PutTopology(part, places));
      GNND_TRY(Run(task, slice, rows, places));
      GNND_TRY(TakeRows(task, slice, rows, places));
      added->fetch_add(EdgesOf(rows) * slice.width, std::memory_order_relaxed);
    }
  }
  return Status::Ok();
}

Status DeviceProduct::PutState(const Task& task, const Slice& slice) {
  const uint64_t nodes = dataset_.num_nodes();
  if (slice.width == task.columns) {
    return stream_->StageIn<float>({state_.data(), nodes * slice.width},
                                   {task.from, nodes * slice.width});
  }
  const uint64_t most = std::max<uint64_t>(1, kStagedBytes / (4 * slice.width));
  for (uint64_t first = 0; first < nodes; first += most) {
    const uint64_t count = std::min(most, nodes - first);
    staged_.resize(count * slice.width);
    GNND_TRY(ForRanges(threads_, count, kGrainRows, [&](uint64_t begin, uint64_t end) {
      for (uint64_t r = begin; r < end; ++r) {
        std::memcpy(staged_.data() + r * slice.width,
                    task.from + (first + r) * task.columns + slice.begin, 4 * slice.width);
      }
      return Status::Ok();
    }));
    GNND_TRY(stream_->StageIn<float>({state_.data() + first * slice.width, staged_.size()},
                                     {staged_.data(), staged_.size()}));
  }
  return Status::Ok();
}

Status DeviceProduct::PutTopology(size_t part, const Places& places) {
  if (held_ == part) return Status::Ok();
  held_ = SIZE_MAX;
  const Rows& rows = parts_[part];
  const std::span<const int64_t> indptr = dataset_.indptr();
  std::vector<uint32_t> local(rows.end - rows.begin + 1);
  for (uint64_t v = rows.begin; v <= rows.end; ++v) {
    local[v - rows.begin] = static_cast<uint32_t>(indptr[v] - indptr[rows.begin]);
  }
  GNND_TRY(stream_->StageIn<uint32_t>({places.indptr, local.size()}, local));
  const uint64_t edges = EdgesOf(rows);
  const auto index = dataset_.indices().subspan(static_cast<uint64_t>(indptr[rows.begin]), edges);
  GNND_TRY(stream_->StageIn<uint32_t>({places.index, edges}, index));
  held_ = part;
  return Status::Ok();
}

Status DeviceProduct::Run(const Task& task, const Slice& slice, const Rows& rows,
                          const Places& places) {
  const uint64_t count = rows.end - rows.begin;
  GNND_TRY(stream_->StageIn<float>({places.scale, count}, {task.scale + rows.begin, count}));
  gnnd_device_spmm product{};
  product.element = product.out_element = GNND_ELEMENT_FLOAT32;
  product.rows = static_cast<uint32_t>(count);
  product.columns = static_cast<uint32_t>(slice.width);
  product.x = state_.data();
  product.x_stride = product.self_stride = product.out_stride = slice.width;
  product.indptr = places.indptr;
  product.index = places.index;
  product.self = state_.data() + rows.begin * slice.width;
  product.self_rows = task.self_loops ? product.rows : 0;
  product.scale = places.scale;
  product.out = places.out;
  gnnd_device_error error{};
  const gnnd_device_plugin& table = device_->table();
  if (table.spmm(stream_->get(), &product, &error) != GNND_DEVICE_OK) return StatusOf(error);
  return Status::Ok();
}

Status DeviceProduct::TakeRows(const Task& task, const Slice& slice, const Rows& rows,
                               const Places& places) {
  const uint64_t count = rows.end - rows.begin;
  if (slice.width == task.columns) {
    return stream_->StageOut<float>({task.to + rows.begin * slice.width, count * slice.width},
                                    {places.out, count * slice.width});
  }
  const uint64_t most = std::max<uint64_t>(1, kStagedBytes / (4 * slice.width));
  for (uint64_t first = 0; first < count; first += most) {
    const uint64_t some = std::min(most, count - first);
    staged_.resize(some * slice.width);
    GNND_TRY(stream_->StageOut<float>({staged_.data(), staged_.size()},
                                      {places.out + first * slice.width, staged_.size()}));
    GNND_TRY(ForRanges(threads_, some, kGrainRows, [&](uint64_t begin, uint64_t end) {
      for (uint64_t r = begin; r < end; ++r) {
        std::memcpy(task.to + (rows.begin + first + r) * task.columns + slice.begin,
                    staged_.data() + r * slice.width, 4 * slice.width);
      }
      return Status::Ok();
    }));
  }
  return Status::Ok();
}

}  // namespace gnnd
