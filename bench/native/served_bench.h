#pragma once

#include <time.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "core/base/clock.h"
#include "core/base/status.h"
#include "core/graph/npy.h"

// Common code of benchmarks that run beside peers in other processes. The driver (bench/peers/*.py)
// starts all contestants, which prepare and then wait; it lets them work in turns, so that all meet
// the same state of the machine. A contestant reads one command a line, executes it, answers with
// one JSON object a line, and ends with its input.

namespace gnnd::bench {

// The value after `name` on the command line, or `fallback`.
inline std::string Argument(int argc, char** argv, const char* name, const std::string& fallback) {
  for (int i = 1; i + 1 < argc; ++i) {
    if (std::strcmp(argv[i], name) == 0) return argv[i + 1];
  }
  return fallback;
}

inline uint32_t NumberArgument(int argc, char** argv, const char* name, uint32_t fallback) {
  const std::string text = Argument(argc, argv, name, std::to_string(fallback));
  char* end = nullptr;
  const unsigned long value = std::strtoul(text.c_str(), &end, 10);
  if (value == 0 || value > UINT32_MAX || *end != '\0') {
    std::fprintf(stderr, "%s %s: not a positive number\n", name, text.c_str());
    std::exit(64);
  }
  return static_cast<uint32_t>(value);
}

inline std::vector<int32_t> FanoutsArgument(int argc, char** argv, const std::string& fallback) {
  std::vector<int32_t> fanouts;
  std::istringstream text(Argument(argc, argv, "--fanouts", fallback));
  for (std::string part; std::getline(text, part, ',');) fanouts.push_back(std::stoi(part));
  return fanouts;
}

// Processor time that this thread, or the whole process, has used.
inline uint64_t CpuNs(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<uint64_t>(time.tv_sec) * kNsPerSecond + static_cast<uint64_t>(time.tv_nsec);
}

// Ends the program with the reason when `result` is an error.
template <typename T>
T Must(Result<T> result) {
  if (!result.ok()) {
    std::fprintf(stderr, "%s\n", result.status().message().c_str());
    std::exit(1);
  }
  return std::move(*result);
}

inline void Must(const Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s\n", status.message().c_str());
  std::exit(1);
}

inline NpyArray OpenNpy(const std::string& folder, const char* name) {
  return Must(NpyArray::Open(folder + "/" + name));
}

template <typename T>
void WriteNpy(const std::string& path, NpyType type, const std::vector<uint64_t>& shape,
              const T* data, uint64_t size) {
  const std::string header = NpyHeader(type, shape);
  FILE* file = std::fopen(path.c_str(), "wb");
  const bool written = file != nullptr &&
                       std::fwrite(header.data(), 1, header.size(), file) == header.size() &&
                       std::fwrite(data, sizeof(T), size, file) == size;
  if (!written || std::fclose(file) != 0) {
    std::fprintf(stderr, "%s: cannot be written\n", path.c_str());
    std::exit(1);
  }
}

// "name":[values]
template <typename T>
std::string JsonList(const char* name, const std::vector<T>& values) {
  std::ostringstream out;
  out.precision(9);
  out << '"' << name << "\":[";
  for (size_t i = 0; i < values.size(); ++i) out << (i == 0 ? "" : ",") << values[i];
  out << ']';
  return out.str();
}

// Reports that all is ready, then calls answer(words of the line) for each command and prints the
// result, which must be one JSON object.
template <typename Answer>
void Serve(const std::string& ready, const Answer& answer) {
  std::printf("%s\n", ready.c_str());
  std::fflush(stdout);
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream text(line);
    std::vector<std::string> words;
    for (std::string word; text >> word;) words.push_back(word);
    std::printf("%s\n", answer(words).c_str());
    std::fflush(stdout);
  }
}

}  // namespace gnnd::bench
