#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>

#include "core/base/check.h"
#include "core/model/model_spec.h"

// Files of gnnd_pyg_export, which torch_geometric's side reads.

namespace gnnd::test {

using Folder = std::filesystem::path;

// .npy format 1.0, little-endian, C order.
template <typename T>
void WriteNpy(const Folder& path, const char* type, std::span<const T> values, uint64_t columns) {
  std::string shape = std::to_string(values.size() / (columns == 0 ? 1 : columns)) + ",";
  if (columns != 0) shape += std::to_string(columns);
  std::string header =
      std::string("{'descr': '") + type + "', 'fortran_order': False, 'shape': (" + shape + "), }";
  header.resize((10 + header.size() + 1 + 63) / 64 * 64 - 10, ' ');
  header.back() = '\n';
  const auto length = static_cast<uint16_t>(header.size());
  std::ofstream file(path, std::ios::binary);
  file.write("\x93NUMPY\x01\x00", 8);
  file.write(reinterpret_cast<const char*>(&length), sizeof length);
  file << header;
  file.write(reinterpret_cast<const char*>(values.data()),
             static_cast<std::streamsize>(values.size_bytes()));
  GNND_CHECK(file.good());
}

inline void WriteSafetensors(const Folder& path, const ParameterManifest& manifest,
                             std::span<const float> parameters) {
  std::string header = "{";
  uint64_t at = 0;
  for (const ParameterTensor& tensor : manifest.tensors) {
    std::string shape;
    for (const uint32_t size : tensor.shape) {
      shape.append(shape.empty() ? "" : ",").append(std::to_string(size));
    }
    const uint64_t end = at + tensor.size() * sizeof(float);
    if (at != 0) header += ",";
    header += "\"" + tensor.name + "\":{\"dtype\":\"F32\",\"shape\":[" + shape +
              "],\"data_offsets\":[" + std::to_string(at) + "," + std::to_string(end) + "]}";
    at = end;
  }
  header += "}";
  const uint64_t length = header.size();
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(&length), sizeof length);
  file << header;
  for (const ParameterTensor& tensor : manifest.tensors) {
    file.write(reinterpret_cast<const char*>(parameters.data() + tensor.offset),
               static_cast<std::streamsize>(tensor.size() * sizeof(float)));
  }
  GNND_CHECK(file.good());
}

}  // namespace gnnd::test
