#include "cuda/sim/script.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <string_view>

#include "include/gnnd/device_plugin.h"

namespace gnnd::sim {
namespace {

constexpr uint32_t kMostDevices = 64;
constexpr uint64_t kMostRate = 10'000;
constexpr uint64_t kMostError = 10'000;

bool NumberOf(std::string_view text, uint64_t* number) {
  const char* const end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, *number);
  return error == std::errc() && stopped == end;
}

std::vector<std::string_view> PartsOf(std::string_view text) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    parts.push_back(text.substr(0, comma));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return parts;
}

// enum gnnd_link_kind; 0 = none of them.
uint32_t KindOf(std::string_view name) {
  return name == "NVLINK"     ? GNND_LINK_NVLINK
         : name == "PCIE"     ? GNND_LINK_PCIE
         : name == "HOST_BUS" ? GNND_LINK_HOST_BUS
                              : 0;
}

class Reader {
 public:
  Reader(const Environment& environment, Script* script)
      : environment_(environment), script_(*script) {}

  template <typename T>
  void Number(const char* name, uint64_t most, T* to) {
    uint64_t number = 0;
    const std::string_view text = Text(name);
    if (text.empty()) return;
    if (NumberOf(text, &number) && number <= most)
      *to = static_cast<T>(number);
    else
      Problem(name, text, "expected an integer up to " + std::to_string(most));
  }

  void Visible(const Pose& pose) {
    for (const std::string_view part : PartsOf(Text(pose.visible))) {
      uint32_t device = 0;
      while (device < script_.devices && UuidOf(device, pose) != part) ++device;
      if (device < script_.devices)
        script_.visible.push_back(device);
      else
        Problem(pose.visible, part, "no such device");
    }
    if (!Text(pose.visible).empty()) return;
    for (uint32_t device = 0; device < script_.devices; ++device) script_.visible.push_back(device);
  }

  void Peers() {
    for (const std::string_view part : PartsOf(Text("GNND_SIM_PEERS"))) {
      const size_t dash = std::min(part.find('-'), part.size());
      const size_t colon = std::min(part.find(':', dash), part.size());
      uint64_t a = 0;
      uint64_t b = 0;
      const std::string_view name = part.substr(std::min(colon + 1, part.size()));
      const uint32_t kind = KindOf(name);
      const bool is_read = dash < colon && NumberOf(part.substr(0, dash), &a) &&
                           NumberOf(part.substr(dash + 1, colon - dash - 1), &b);
      if (is_read && kind != 0 && a != b && a < script_.devices && b < script_.devices)
        script_.peers.push_back({static_cast<uint32_t>(a), static_cast<uint32_t>(b), kind});
      else
        Problem("GNND_SIM_PEERS", part, "expected two devices, as 0-1:NVLINK, PCIE or HOST_BUS");
    }
  }

  void Rates() {
    for (const std::string_view part : PartsOf(Text("GNND_SIM_RATES"))) {
      const size_t colon = std::min(part.find(':'), part.size());
      const std::string_view name = part.substr(0, colon);
      const uint32_t kind = name == "HOST" ? 0 : KindOf(name);
      uint64_t rate = 0;
      const bool is_read = colon < part.size() && NumberOf(part.substr(colon + 1), &rate) &&
                           rate > 0 && rate <= kMostRate;
      if (is_read && (kind != 0 || name == "HOST"))
        script_.rates[kind] = rate;
      else
        Problem("GNND_SIM_RATES", part,
                "expected HOST, NVLINK, PCIE or HOST_BUS, then :N up to 10000");
    }
  }

  void Faults() {
    constexpr std::string_view kinds[] = {"memory", "register", "launch", "lost", "torch-memory"};
    for (const std::string_view part : PartsOf(Text("GNND_SIM_FAULT"))) {
      const size_t colon = std::min(part.rfind(':'), part.size());
      const std::string_view kind = part.substr(0, colon);
      uint64_t at = 0;
      const bool is_read = colon < part.size() && NumberOf(part.substr(colon + 1), &at) && at > 0;
      if (is_read && (std::ranges::find(kinds, kind) != std::end(kinds) || IsTorchError(kind)))
        script_.faults[std::string(kind.substr(0, kind.find(':')))] = at;
      else
        Problem("GNND_SIM_FAULT", part,
                "expected memory, register, launch, lost, torch-memory or torch-error:CODE, then "
                ":N");
    }
  }

  std::string_view Text(const char* name) const {
    const char* const text = environment_(name);
    return text == nullptr ? "" : text;
  }

 private:
  // Whether it is "torch-error:CODE"; records the code.
  bool IsTorchError(std::string_view kind) {
    constexpr std::string_view name = "torch-error:";
    uint64_t code = 0;
    if (!kind.starts_with(name) || !NumberOf(kind.substr(name.size()), &code)) return false;
    if (code == 0 || code > kMostError) return false;
    script_.torch_error = static_cast<int>(code);
    return true;
  }

  void Problem(const char* name, std::string_view text, const std::string& expected) {
    script_.problems.push_back(std::string(name) + "=" + std::string(text) + ": " + expected);
  }

  const Environment& environment_;
  Script& script_;
};

}  // namespace

std::string UuidOf(uint32_t device, const Pose& pose) {
  char text[48];
  static_cast<void>(
      std::snprintf(text, sizeof text, "%s-00000000-0000-0000-0000-%012u", pose.uuid, device));
  return text;
}

Script ReadScript(const Environment& environment, const Pose& pose) {
  Script script;
  Reader reader(environment, &script);
  reader.Number("GNND_SIM_DEVICES", kMostDevices, &script.devices);
  reader.Number("GNND_SIM_MEMORY", uint64_t{1} << 42, &script.memory_bytes);
  reader.Number("GNND_SIM_RESERVE", uint64_t{1} << 42, &script.reserve_bytes);
  reader.Number("GNND_SIM_SEED", UINT64_MAX, &script.random_seed);
  reader.Number("GNND_SIM_PROCESSES", 1000, &script.processes);
  reader.Number("GNND_SIM_SYSTEM", kMostError, &script.system_error);
  reader.Number("GNND_SIM_KIND", GNND_MEMORY_HOST, &script.memory_kind);
  reader.Visible(pose);
  reader.Peers();
  reader.Rates();
  reader.Faults();
  script.once = reader.Text("GNND_SIM_FAULT_ONCE");
  return script;
}

}  // namespace gnnd::sim
