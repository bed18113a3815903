#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/base/sha256.h"
#include "core/base/status.h"
#include "core/ledger/segment.h"

// Images: everything that decides the rest of a job, as a file (docs/formats/image.md). A segment
// that starts from one ends with the bits of the job that was never interrupted, on whatever
// executors. An image leaves out what follows from it (samples, gradients, chunks of an open
// evaluation) or decides nothing (counters, estimates, batches by device).

namespace gnnd {

inline constexpr uint64_t kImageMagic = 0x3130474D49444E47;  // "GNDIMG01", little-endian
inline constexpr uint32_t kImageFormat = 2;

// The content of an image's header.
struct ImageFacts {
  uint64_t version = 0;   // committed groups
  uint64_t batches = 0;   // committed batches, numbered over the job
  uint64_t epochs = 0;    // epochs whose batches are all committed
  std::string build_id;   // the build that wrote it
  uint64_t bytes = 0;     // file size
  Sha256Digest sha256{};  // over all bytes before the digest, which ends the file
  std::string path;
};
inline constexpr uint32_t kImageOwnerBytes = 64;

// Writes the newest version's image into `folder`, named by the epochs that are over and the
// batches of the next one that are committed, in digits of a fixed number: names in order are
// images in order. The file appears whole and durable or not at all. All of it is copied under the
// segment's mutex, so that no step and no evaluation is committed meanwhile; hashing and writing
// come after that. Needs as much memory as the file is long. May be called from any thread;
// Trainers wait for the copy alone.
//
// `owner` names the job in fewer than kImageOwnerBytes bytes, because properties that the segment
// does not know (model, dataset, random seed) decide bits, too.
//
// kNotFound before version 0 is written, kAborted when the mutex is not to be had within 10 s, kIo
// and kDiskFull with the system's reason.
Result<ImageFacts> WriteImage(const Segment& segment, const std::string& folder,
                              const std::string& owner);

// Puts a new segment into the state of the one that the image was written from. Nothing changes
// unless all of the image is sound and fits. REQUIRES: nobody is registered in the segment yet.
//
// kDatasetCorrupt for a file with other bytes than were written; kInvalidArgument names the first
// field in which the image's job differs, its owner first; kIo and kNotFound with the system's
// reason. An image of another build is loaded: the caller compares the build ids.
Result<ImageFacts> LoadImage(Segment& segment, const std::string& path, const std::string& owner);

// The newest parameters of any job's image, or the best ones so far, for another job to begin with.
// kNotFound where the best are asked for before anything was evaluated; otherwise as LoadImage.
Result<std::vector<float>> ReadImageParameters(const std::string& path, bool best);

}  // namespace gnnd
