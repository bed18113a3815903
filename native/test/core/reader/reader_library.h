#pragma once

#include <dlfcn.h>
#include <doctest/doctest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "reader/gnnd_reader.h"

namespace gnnd::test {

// The functions of gnnd_reader.so, as a user's process has them.
class ReaderLibrary {
 public:
  ReaderLibrary() {
    const auto binary = std::filesystem::read_symlink("/proc/self/exe");
    handle_ = dlopen((binary.parent_path() / "gnnd_reader.so").c_str(), RTLD_NOW | RTLD_LOCAL);
    const std::string why = handle_ == nullptr ? dlerror() : "";
    REQUIRE(why == "");
    Find("gnnd_reader_open", &open);
    Find("gnnd_reader_next", &next);
    Find("gnnd_reader_copy", &copy);
    Find("gnnd_reader_copy_hop", &copy_hop);
    Find("gnnd_reader_parts", &parts);
    Find("gnnd_reader_copy_typed", &copy_typed);
    Find("gnnd_reader_return", &give_back);
    Find("gnnd_reader_close", &close);
  }

  decltype(&gnnd_reader_open) open;
  decltype(&gnnd_reader_next) next;
  decltype(&gnnd_reader_copy) copy;
  decltype(&gnnd_reader_copy_hop) copy_hop;
  decltype(&gnnd_reader_parts) parts;
  decltype(&gnnd_reader_copy_typed) copy_typed;
  decltype(&gnnd_reader_return) give_back;
  decltype(&gnnd_reader_close) close;

 private:
  template <typename Function>
  void Find(const char* name, Function* function) const {
    *function = reinterpret_cast<Function>(dlsym(handle_, name));
    const bool is_there = *function != nullptr;
    REQUIRE(is_there);
  }

  void* handle_;
};

// A reader that joins at once, and leaves with this.
class TestReader {
 public:
  TestReader(const ReaderLibrary& library, const std::string& socket, uint32_t rank, uint32_t world)
      : library_(library) {
    char error[256] = "";
    reader_ = library.open(socket.c_str(), rank, world, 2, error, sizeof error);
    why = error;
  }
  ~TestReader() { Close(); }
  TestReader(const TestReader&) = delete;
  TestReader& operator=(const TestReader&) = delete;

  bool joined() const { return reader_ != nullptr; }
  void Close() {
    if (joined()) library_.close(reader_);
    reader_ = nullptr;
  }
  int Next(GnndBatch* batch, int timeout_ms = 10'000) {
    return library_.next(reader_, timeout_ms, batch);
  }
  int Copy(const GnndArrays& arrays) { return library_.copy(reader_, &arrays); }
  int CopyHop(uint32_t hop, const GnndHopArrays& arrays) {
    return library_.copy_hop(reader_, hop, &arrays);
  }
  int Parts(GnndType* types, GnndBlock* blocks) { return library_.parts(reader_, types, blocks); }
  int CopyTyped(const GnndTypeArrays* types, const std::vector<GnndRelationArrays>& relations) {
    return library_.copy_typed(reader_, types, relations.data(), relations.size());
  }
  void Return() { CHECK(library_.give_back(reader_) == 0); }

  std::string why;

 private:
  const ReaderLibrary& library_;
  GnndReader* reader_ = nullptr;
};

}  // namespace gnnd::test
