#include <cstdio>
#include <cstdlib>

// Stands for NVIDIA's management library in nvml_test.cc: a GPU that is split into the instances 1
// and 3 of four, unless FAKE_NVML says "off" (MIG is off).

namespace {

struct Memory {
  unsigned long long total;
  unsigned long long free;
  unsigned long long used;
};

int gpu = 0;
int others[3] = {};  // in slots 1, 2 and 3: over NVLink, on the same node, on another one
int instances[4] = {};

bool IsOff() {
  const char* const said = std::getenv("FAKE_NVML");
  return said != nullptr && said[0] == 'o';
}

long NumberOf(void* device) { return static_cast<int*>(device) - instances; }

}  // namespace

extern "C" {

int nvmlInit_v2() { return 0; }

int nvmlDeviceGetHandleByPciBusId_v2(const char* pci, void** device) {
  if (pci[0] != '0') return 6;
  const int slot = pci[1] - '0';
  *device = slot == 0 ? &gpu : &others[slot - 1];
  return 0;
}

int nvmlDeviceGetP2PStatus(void*, void* other, int what, int* status) {
  *status = what == 2 && other == &others[0] ? 0 : 4;
  return 0;
}

int nvmlDeviceGetTopologyCommonAncestor(void*, void* other, int* level) {
  *level = other == &others[1] ? 30 : 50;
  return 0;
}

int nvmlDeviceGetMigMode(void*, unsigned int* current, unsigned int* pending) {
  *current = *pending = IsOff() ? 0 : 1;
  return 0;
}

int nvmlDeviceGetMaxMigDeviceCount(void*, unsigned int* count) {
  *count = 4;
  return IsOff() ? 3 : 0;
}

int nvmlDeviceGetMigDeviceHandleByIndex(void*, unsigned int index, void** instance) {
  if (index % 2 == 0) return 6;
  *instance = &instances[index];
  return 0;
}

int nvmlDeviceGetUUID(void* device, char* text, unsigned int bytes) {
  std::snprintf(text, bytes, "MIG-0000000%ld", NumberOf(device));
  return 0;
}

int nvmlDeviceGetName(void*, char* text, unsigned int bytes) {
  std::snprintf(text, bytes, "A GPU MIG 1g.10gb");
  return 0;
}

int nvmlDeviceGetMemoryInfo(void* device, Memory* memory) {
  if (NumberOf(device) == 3) return 4;
  *memory = {10'000, 9'000, 1'000};
  return 0;
}
}
