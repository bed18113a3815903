#include "cuda/sim/script.h"

#include <doctest/doctest.h>

#include <map>
#include <string>

#include "include/gnnd/device_plugin.h"

namespace gnnd::sim {
namespace {

Script ScriptOf(const std::map<std::string, std::string>& environment) {
  return ReadScript([&](const char* name) -> const char* {
    const auto found = environment.find(name);
    return found == environment.end() ? nullptr : found->second.c_str();
  });
}

TEST_CASE("an empty environment is one device that nothing befalls") {
  const Script script = ScriptOf({});
  CHECK(script.devices == 1);
  CHECK(script.visible == std::vector<uint32_t>{0});
  CHECK(script.faults.empty());
  CHECK(script.problems.empty());
}

TEST_CASE("devices, memory and faults are read; the visible ones in their order") {
  const Script script = ScriptOf({{"GNND_SIM_DEVICES", "3"},
                                  {"GNND_SIM_MEMORY", "4096"},
                                  {"GNND_SIM_VISIBLE", UuidOf(2) + "," + UuidOf(0)},
                                  {"GNND_SIM_PEERS", "0-1:NVLINK,2-0:HOST_BUS"},
                                  {"GNND_SIM_FAULT", "memory:3,lost:100,torch-error:719:7"}});
  CHECK(script.problems.empty());
  CHECK(script.memory_bytes == 4096);
  CHECK(script.visible == std::vector<uint32_t>{2, 0});
  CHECK(script.peers ==
        std::vector<Script::Peers>{{0, 1, GNND_LINK_NVLINK}, {2, 0, GNND_LINK_HOST_BUS}});
  CHECK(script.faults ==
        std::map<std::string, uint64_t>{{"memory", 3}, {"lost", 100}, {"torch-error", 7}});
  CHECK(script.torch_error == 719);
}

TEST_CASE("each part that cannot be read is named, and the rest stands") {
  const Script script =
      ScriptOf({{"GNND_SIM_DEVICES", "many"},
                {"GNND_SIM_MEMORY", "77"},
                {"GNND_SIM_VISIBLE", "SIM-7"},
                {"GNND_SIM_PEERS", "0-0:PCIE,0-1:NVLINK,0:NVLINK"},
                {"GNND_SIM_FAULT", "memory,flood:2,launch:0,register:1,torch-error:0:1"}});
  CHECK(script.problems.size() == 9);
  CHECK(script.problems[0].find("GNND_SIM_DEVICES=many") == 0);
  CHECK(script.memory_bytes == 77);
  CHECK(script.faults == std::map<std::string, uint64_t>{{"register", 1}});
}

}  // namespace
}  // namespace gnnd::sim
