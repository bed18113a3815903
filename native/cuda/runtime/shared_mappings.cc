#include "cuda/runtime/shared_mappings.h"

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <chrono>
#include <thread>

// Unproven: no GPU has run this yet (docs/gpu.md).

namespace gnnd::cuda {
namespace {

constexpr int kNotSupported = cudaErrorNotSupported;

// The driver's functions, looked up through the runtime: no library of the driver is linked.
struct Driver {
  decltype(&cuMemCreate) create = nullptr;
  decltype(&cuMemRelease) release = nullptr;
  decltype(&cuMemExportToShareableHandle) to_descriptor = nullptr;
  decltype(&cuMemImportFromShareableHandle) from_descriptor = nullptr;
  decltype(&cuMemAddressReserve) reserve = nullptr;
  decltype(&cuMemAddressFree) give_back = nullptr;
  decltype(&cuMemMap) map = nullptr;
  decltype(&cuMemUnmap) unmap = nullptr;
  decltype(&cuMemSetAccess) set_access = nullptr;
  decltype(&cuMemGetAllocationGranularity) granularity = nullptr;
  decltype(&cuDeviceGetAttribute) attribute = nullptr;
  bool is_complete = true;

  Driver() {
    Find("cuMemCreate", &create);
    Find("cuMemRelease", &release);
    Find("cuMemExportToShareableHandle", &to_descriptor);
    Find("cuMemImportFromShareableHandle", &from_descriptor);
    Find("cuMemAddressReserve", &reserve);
    Find("cuMemAddressFree", &give_back);
    Find("cuMemMap", &map);
    Find("cuMemUnmap", &unmap);
    Find("cuMemSetAccess", &set_access);
    Find("cuMemGetAllocationGranularity", &granularity);
    Find("cuDeviceGetAttribute", &attribute);
  }

 private:
  // All of these functions exist since CUDA 10.2, unchanged.
  template <typename Function>
  void Find(const char* name, Function* function) {
    [[maybe_unused]] constexpr unsigned int kVersion = 12000;
    cudaDriverEntryPointQueryResult result{};
    void* found = nullptr;
#if CUDART_VERSION >= 12050
    const cudaError_t error =
        cudaGetDriverEntryPointByVersion(name, &found, kVersion, cudaEnableDefault, &result);
#else
    const cudaError_t error = cudaGetDriverEntryPoint(name, &found, cudaEnableDefault, &result);
#endif
    if (error != cudaSuccess || result != cudaDriverEntryPointSuccess) {
      static_cast<void>(cudaGetLastError());
      is_complete = false;
      return;
    }
    *function = reinterpret_cast<Function>(found);
  }
};

const Driver& TheDriver() {
  static const Driver driver;
  return driver;
}

// The runtime and the driver number devices alike.
int DeviceInUse(CUdevice* device) {
  int index = 0;
  const cudaError_t error = cudaGetDevice(&index);
  *device = index;
  return static_cast<int>(error);
}

CUmemAllocationProp PropertiesOn(CUdevice device) {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
  return properties;
}

bool ExportsDescriptors(CUdevice device) {
  const Driver& driver = TheDriver();
  if (!driver.is_complete) return false;
  int has_mappings = 0;
  int has_descriptors = 0;
  return driver.attribute(&has_mappings, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED,
                          device) == CUDA_SUCCESS &&
         driver.attribute(&has_descriptors,
                          CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED,
                          device) == CUDA_SUCCESS &&
         has_mappings != 0 && has_descriptors != 0;
}

int RoundToGranularity(CUdevice device, uint64_t* bytes) {
  const CUmemAllocationProp properties = PropertiesOn(device);
  size_t unit = 0;
  const CUresult error =
      TheDriver().granularity(&unit, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
  if (error == CUDA_SUCCESS) *bytes = (*bytes + unit - 1) / unit * unit;
  return error;
}

// Maps memory for kernels and copies of the device; from then on the mapping alone keeps it.
int Mapped(CUmemGenericAllocationHandle handle, CUdevice device, uint64_t bytes, void** memory) {
  const Driver& driver = TheDriver();
  CUdeviceptr address = 0;
  CUresult error = driver.reserve(&address, bytes, 0, 0, 0);
  if (error != CUDA_SUCCESS) return error;
  error = driver.map(address, bytes, 0, handle, 0);
  if (error != CUDA_SUCCESS) {
    driver.give_back(address, bytes);
    return error;
  }
  CUmemAccessDesc access{};
  access.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  error = driver.set_access(address, bytes, &access, 1);
  if (error != CUDA_SUCCESS) {
    driver.unmap(address, bytes);
    driver.give_back(address, bytes);
    return error;
  }
  *memory = reinterpret_cast<void*>(address);
  return 0;
}

// Whether a driver's error means that nothing works any more in this process.
bool BreaksContext(int error) {
  return error == CUDA_ERROR_ECC_UNCORRECTABLE || error == CUDA_ERROR_NVLINK_UNCORRECTABLE ||
         (error >= CUDA_ERROR_ILLEGAL_ADDRESS && error <= CUDA_ERROR_LAUNCH_FAILED);
}

// Turns errors of sharing memory, which is useful but never needed, into refusals, except a broken
// context. Drivers were seen to return CUDA_ERROR_UNKNOWN there.
int Optional(int error) { return BreaksContext(error) ? error : kNotSupported; }

// Allocates memory and waits a while for it: memory of a dead Trainer is freed when the last of its
// readers has noticed the death, which may take them a batch.
int Created(CUdevice device, uint64_t bytes, CUmemGenericAllocationHandle* handle) {
  constexpr auto kPause = std::chrono::milliseconds(100);
  constexpr int kTries = 100;
  const CUmemAllocationProp properties = PropertiesOn(device);
  CUresult error = CUDA_ERROR_OUT_OF_MEMORY;
  for (int left = kTries; left > 0 && error == CUDA_ERROR_OUT_OF_MEMORY; --left) {
    if (left < kTries) std::this_thread::sleep_for(kPause);
    error = TheDriver().create(handle, bytes, &properties, 0);
  }
  return error;
}

// Plain memory, without a descriptor to share it.
int AllocatePlain(uint64_t bytes, void** memory) {
  const cudaError_t error = cudaMalloc(memory, bytes);
  if (error != cudaSuccess) static_cast<void>(cudaGetLastError());
  return static_cast<int>(error);
}

}  // namespace

int SharedMappings::Allocate(uint64_t bytes, void** memory, SharedMemory* shared) {
  *shared = {};
  CUdevice device = 0;
  if (const int error = DeviceInUse(&device); error != 0) return error;
  if (!ExportsDescriptors(device)) return AllocatePlain(bytes, memory);
  const Driver& driver = TheDriver();
  if (const int error = RoundToGranularity(device, &bytes); error != 0) return error;
  CUmemGenericAllocationHandle handle = 0;
  int error = Created(device, bytes, &handle);
  if (error == 0) {
    error = Mapped(handle, device, bytes, memory);
    if (error != 0) driver.release(handle);
  }
  if (error == CUDA_ERROR_OUT_OF_MEMORY || BreaksContext(error)) return error;
  // A sandbox or a virtual GPU may refuse although the device says it can; others then read the
  // rows elsewhere.
  if (error != 0) return AllocatePlain(bytes, memory);
  int descriptor = -1;
  // Without a descriptor the memory is usable, but not shared.
  if (driver.to_descriptor(&descriptor, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0) ==
      CUDA_SUCCESS) {
    *shared = {descriptor, 0, bytes};
  }
  driver.release(handle);
  const std::lock_guard lock(mutex_);
  mapped_[*memory] = bytes;
  return 0;
}

int SharedMappings::Open(const SharedMemory& shared, void** memory) {
  CUdevice device = 0;
  if (const int error = DeviceInUse(&device); error != 0) return error;
  if (!ExportsDescriptors(device)) return kNotSupported;
  const Driver& driver = TheDriver();
  CUmemGenericAllocationHandle handle = 0;
  const auto descriptor = reinterpret_cast<void*>(static_cast<intptr_t>(shared.fd));
  if (const CUresult error =
          driver.from_descriptor(&handle, descriptor, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
      error != CUDA_SUCCESS) {
    return Optional(error);
  }
  const int error = Mapped(handle, device, shared.bytes, memory);
  driver.release(handle);
  if (error != 0) return Optional(error);
  const std::lock_guard lock(mutex_);
  mapped_[*memory] = shared.bytes;
  return 0;
}

int SharedMappings::Free(void* memory) {
  uint64_t bytes = 0;
  {
    const std::lock_guard lock(mutex_);
    const auto found = mapped_.find(memory);
    if (found == mapped_.end()) return static_cast<int>(cudaFree(memory));
    bytes = found->second;
    mapped_.erase(found);
  }
  // Unlike cudaFree, unmapping does not wait for readers.
  static_cast<void>(cudaDeviceSynchronize());
  const auto address = reinterpret_cast<CUdeviceptr>(memory);
  const CUresult unmapped = TheDriver().unmap(address, bytes);
  const CUresult given_back = TheDriver().give_back(address, bytes);
  return unmapped != CUDA_SUCCESS ? unmapped : given_back;
}

}  // namespace gnnd::cuda
