#include "core/base/bus_error.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <string_view>

// This code runs in the signal handler: nothing here allocates or takes a lock.

namespace gnnd {
namespace {

int exit_code_of_unreadable = 1;

// Reads lines of /proc/self/maps.
class MapsReader {
 public:
  MapsReader() : fd_(open("/proc/self/maps", O_RDONLY | O_CLOEXEC)) {}
  ~MapsReader() {
    if (fd_ >= 0) close(fd_);
  }

  // False at the end. A line longer than the buffer is cut.
  bool Next(std::string_view* line) {
    for (;;) {
      const char* end = static_cast<const char*>(memchr(text_ + at_, '\n', size_ - at_));
      if (end != nullptr) {
        *line = {text_ + at_, static_cast<size_t>(end - (text_ + at_))};
        at_ += line->size() + 1;
        return true;
      }
      memmove(text_, text_ + at_, size_ - at_);
      size_ -= at_;
      at_ = 0;
      if (size_ == sizeof text_) size_ = 0;
      const ssize_t got = fd_ < 0 ? 0 : read(fd_, text_ + size_, sizeof text_ - size_);
      if (got <= 0) return false;
      size_ += static_cast<size_t>(got);
    }
  }

 private:
  int fd_;
  char text_[8192];
  size_t at_ = 0;
  size_t size_ = 0;
};

uintptr_t TakeHex(std::string_view* text) {
  uintptr_t value = 0;
  while (!text->empty()) {
    const char c = text->front();
    const bool digit = c >= '0' && c <= '9';
    if (!digit && (c < 'a' || c > 'f')) break;
    value = value * 16 + static_cast<uintptr_t>(digit ? c - '0' : c - 'a' + 10);
    text->remove_prefix(1);
  }
  return value;
}

// The path in "from-to perms offset device inode   path" if `address` lies within, else "".
std::string_view PathAt(std::string_view line, uintptr_t address) {
  const uintptr_t from = TakeHex(&line);
  if (line.empty()) return {};
  line.remove_prefix(1);
  const uintptr_t to = TakeHex(&line);
  if (address < from || address >= to) return {};
  const size_t slash = line.find('/');
  return slash == std::string_view::npos ? std::string_view{} : line.substr(slash);
}

// A line that is written by one call, because others write to the same log.
class Line {
 public:
  void Add(std::string_view text) {
    const size_t fits = std::min(text.size(), sizeof text_ - size_);
    memcpy(text_ + size_, text.data(), fits);
    size_ += fits;
  }
  void AddNumber(uint64_t value) {
    char digits[20];
    size_t at = sizeof digits;
    do {
      digits[--at] = static_cast<char>('0' + value % 10);
      value /= 10;
    } while (value != 0);
    Add({digits + at, sizeof digits - at});
  }
  void Write() const { static_cast<void>(!write(STDERR_FILENO, text_, size_)); }

 private:
  char text_[8192];
  size_t size_ = 0;
};

std::atomic_flag is_told = ATOMIC_FLAG_INIT;

void OnBusError(int, siginfo_t* info, void*) {
  // Several threads of a team may fault together: the first one reports and ends the process.
  while (is_told.test_and_set()) pause();
  const bool is_fault = info->si_code == BUS_ADRERR;
  const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  MapsReader maps;
  for (std::string_view line; is_fault && maps.Next(&line);) {
    const std::string_view path = PathAt(line, address);
    constexpr std::string_view kDeleted = " (deleted)";
    std::string_view name = path;
    if (name.ends_with(kDeleted)) name.remove_suffix(kDeleted.size());
    if (!name.ends_with(".npy")) continue;
    Line told;
    told.Add("\ngnnd.unreadable ");
    told.AddNumber(static_cast<uint64_t>(getpid()));
    told.Add(" ");
    told.Add(name);
    told.Add("\n");
    told.Write();
    _exit(exit_code_of_unreadable);
  }
  // The signal stays blocked until this handler returns; then it kills the process.
  std::signal(SIGBUS, SIG_DFL);
  raise(SIGBUS);
}

}  // namespace

void ExplainBusErrors(int exit_code) {
  exit_code_of_unreadable = exit_code;
  struct sigaction action{};
  action.sa_sigaction = OnBusError;
  action.sa_flags = SA_SIGINFO;
  sigemptyset(&action.sa_mask);
  sigaction(SIGBUS, &action, nullptr);
}

}  // namespace gnnd
