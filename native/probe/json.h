#pragma once

#include <cstdint>
#include <string>
#include <vector>

// The JSON that probes print.

namespace gnnd {

inline std::string Within(char first, const std::string& text, char last) {
  std::string all(1, first);
  all += text;
  all += last;
  return all;
}

inline std::string Quoted(const std::string& text) {
  std::string quoted;
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      quoted += ' ';
    } else {
      quoted += c;
    }
  }
  return Within('"', quoted, '"');
}

// "name":value pairs in braces.
class Object {
 public:
  Object& Raw(const char* name, const std::string& value) {
    if (!text_.empty()) text_ += ',';
    text_.append(Quoted(name)).append(":").append(value);
    return *this;
  }
  Object& Text(const char* name, const std::string& value) { return Raw(name, Quoted(value)); }
  Object& Number(const char* name, uint64_t value) { return Raw(name, std::to_string(value)); }
  // Writes null for an unknown value.
  Object& Known(const char* name, uint64_t value, uint64_t unknown) {
    return value == unknown ? Raw(name, "null") : Number(name, value);
  }
  std::string Done() const { return Within('{', text_, '}'); }

 private:
  std::string text_;
};

inline std::string ListOf(const std::vector<std::string>& items) {
  std::string text;
  for (const std::string& item : items) {
    if (!text.empty()) text += ',';
    text += item;
  }
  return Within('[', text, ']');
}

}  // namespace gnnd
