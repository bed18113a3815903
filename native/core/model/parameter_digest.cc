#include "core/model/parameter_digest.h"

namespace gnnd {

Sha256Digest DigestOf(const ParameterManifest& manifest, std::span<const float> parameters) {
  Sha256 hash;
  for (const ParameterTensor& tensor : manifest.tensors) {
    hash.Add(std::as_bytes(parameters.subspan(tensor.offset, tensor.size())));
  }
  return hash.Finish();
}

}  // namespace gnnd
