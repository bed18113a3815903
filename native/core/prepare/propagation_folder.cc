#include "core/prepare/propagation_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <set>
#include <utility>

#include "core/base/atomic_file.h"
#include "core/base/mapping.h"

namespace gnnd {
namespace {

// The header of a block's state file.
struct StateHeader {
  uint64_t magic = 0x31545350444E4E47;  // "GNNDPST1"
  uint64_t hop = 0;
};

}  // namespace

std::vector<ColumnBlock> BlocksOf(uint64_t columns, uint64_t width) {
  std::vector<ColumnBlock> blocks;
  for (uint64_t at = 0; at < columns; at += width) {
    blocks.push_back({at, std::min(width, columns - at)});
  }
  return blocks;
}

PropagationFolder::PropagationFolder(std::string folder, const PropagationPlan& plan,
                                     std::span<const ColumnBlock> blocks,
                                     const PropagationShape& shape)
    : folder_(std::move(folder)),
      plan_(plan),
      blocks_(blocks),
      shape_(shape),
      header_(RowHeader(plan.row_type, shape.rows, shape.columns)) {}

// ---- names ----------------------------------------------------------------------------------

std::string PropagationFolder::BlockName(uint32_t op, const ColumnBlock& block) const {
  return "op" + std::to_string(op) + "-columns" + std::to_string(block.begin) + "-" +
         std::to_string(block.begin + block.width);
}

std::string PropagationFolder::PartName(uint32_t op, uint32_t hop, const ColumnBlock& block) const {
  if (blocks_.size() == 1) return RowFile(op, hop);
  return BlockName(op, block) + "-hop" + std::to_string(hop) + ".part";
}

// Hop 0 is written with all columns at once.
std::string PropagationFolder::MomentsName(uint32_t op, uint32_t hop,
                                           const ColumnBlock& block) const {
  if (block.width == shape_.columns) return MomentsFile(op, hop);
  return BlockName(op, block) + "-hop" + std::to_string(hop) + ".moments";
}

std::string PropagationFolder::StateName(uint32_t op, const ColumnBlock& block) const {
  return BlockName(op, block) + ".state";
}

std::string PropagationFolder::PartPath(uint32_t op, uint32_t hop, const ColumnBlock& block) const {
  return Path(PartName(op, hop, block));
}

// ---- what is there --------------------------------------------------------------------------

uint64_t PropagationFolder::PartBytes(uint64_t width) const {
  return shape_.rows * width * BytesOf(plan_.row_type);
}

bool PropagationFolder::HasMoments(const std::string& name, uint64_t width) const {
  return !plan_.standardize || IsThere(Path(name), 2 * width * sizeof(double));
}

bool PropagationFolder::HasRows(uint32_t op, uint32_t hop) const {
  return IsThere(Path(RowFile(op, hop)), header_.size() + PartBytes(shape_.columns)) &&
         HasMoments(MomentsFile(op, hop), shape_.columns);
}

bool PropagationFolder::HasPart(uint32_t op, uint32_t hop, const ColumnBlock& block) const {
  if (HasRows(op, hop)) return true;
  return blocks_.size() > 1 && IsThere(PartPath(op, hop, block), PartBytes(block.width)) &&
         HasMoments(MomentsName(op, hop, block), block.width);
}

Status PropagationFolder::RemoveStrangers() const {
  std::set<std::string> ours = {kNodesFile, kLabelsFile, RowFile(0, 0), MomentsFile(0, 0)};
  for (uint32_t op = 0; op < plan_.operators.size(); ++op) {
    for (uint32_t hop = 1; hop <= plan_.hops; ++hop) {
      ours.insert(RowFile(op, hop));
      ours.insert(MomentsFile(op, hop));
      for (const ColumnBlock& block : blocks_) {
        ours.insert(PartName(op, hop, block));
        ours.insert(MomentsName(op, hop, block));
      }
    }
    for (const ColumnBlock& block : blocks_) ours.insert(StateName(op, block));
  }
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir(folder_.c_str()), closedir);
  if (folder == nullptr) return SystemError(Code::kIo, "reading " + folder_);
  while (const dirent* entry = readdir(folder.get())) {
    const std::string name = entry->d_name;
    if (name != "." && name != ".." && !ours.contains(name)) unlink(Path(name).c_str());
  }
  return Status::Ok();
}

// ---- what is written ------------------------------------------------------------------------

Status PropagationFolder::WriteArray(const char* name, NpyType type,
                                     std::span<const uint64_t> shape,
                                     std::span<const std::byte> values) const {
  const std::string header = NpyHeader(type, shape);
  if (IsThere(Path(name), header.size() + values.size())) return Status::Ok();
  AtomicFile file(Path(name));
  GNND_TRY(file.Create());
  GNND_TRY(file.Write(std::as_bytes(std::span(header.data(), header.size()))));
  GNND_TRY(file.Write(values));
  return file.Commit();
}

Status PropagationFolder::WriteMoments(const Moments& moments, uint32_t op, uint32_t hop,
                                       const ColumnBlock& block) const {
  AtomicFile file(Path(MomentsName(op, hop, block)));
  GNND_TRY(file.Create());
  GNND_TRY(file.Write(std::as_bytes(std::span(moments.mean))));
  GNND_TRY(file.Write(std::as_bytes(std::span(moments.divisor))));
  return file.Commit();
}

Status PropagationFolder::WriteState(uint32_t op, uint32_t hop, const ColumnBlock& block,
                                     const float* state) const {
  const StateHeader header{.hop = hop};
  AtomicFile file(Path(StateName(op, block)));
  GNND_TRY(file.Create());
  GNND_TRY(file.Write(std::as_bytes(std::span(&header, 1))));
  GNND_TRY(file.Write(std::as_bytes(std::span(state, shape_.num_nodes * block.width))));
  return file.Commit();
}

Result<uint32_t> PropagationFolder::ReadState(uint32_t op, const ColumnBlock& block,
                                              float* state) const {
  const std::string path = Path(StateName(op, block));
  const uint64_t bytes = shape_.num_nodes * block.width * sizeof(float);
  if (!IsThere(path, sizeof(StateHeader) + bytes)) return 0U;
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return SystemError(Code::kIo, "opening " + path);
  const Mapping file = GNND_VALUE(Mapping::Map(fd.get(), false));
  StateHeader header;
  std::memcpy(&header, file.data(), sizeof(header));
  if (header.magic != StateHeader{}.magic || header.hop >= plan_.hops) return 0U;
  for (uint32_t hop = 1; hop <= header.hop; ++hop) {
    if (!HasPart(op, hop, block)) return 0U;
  }
  std::memcpy(state, file.data() + sizeof(header), bytes);
  return static_cast<uint32_t>(header.hop);
}

void PropagationFolder::RemoveState(uint32_t op, const ColumnBlock& block) const {
  unlink(Path(StateName(op, block)).c_str());
}

Status PropagationFolder::Join(uint32_t op, const std::function<void()>& joined) const {
  if (blocks_.size() == 1) return Status::Ok();
  for (uint32_t hop = 1; hop <= plan_.hops; ++hop) {
    std::vector<RowPart> parts;
    for (const ColumnBlock& block : blocks_) {
      parts.push_back({PartPath(op, hop, block), block.width * BytesOf(plan_.row_type)});
    }
    if (!HasRows(op, hop)) {
      if (plan_.standardize) GNND_TRY(JoinMoments(op, hop));
      GNND_TRY(JoinParts(parts, shape_.rows, header_, Path(RowFile(op, hop))));
      joined();
    }
    for (const RowPart& part : parts) unlink(part.path.c_str());
    for (const ColumnBlock& block : blocks_) unlink(Path(MomentsName(op, hop, block)).c_str());
  }
  return Status::Ok();
}

// Joins a matrix of two rows, means and divisors, from the parts of its columns.
Status PropagationFolder::JoinMoments(uint32_t op, uint32_t hop) const {
  std::vector<RowPart> parts;
  for (const ColumnBlock& block : blocks_) {
    parts.push_back({Path(MomentsName(op, hop, block)), block.width * sizeof(double)});
  }
  return JoinParts(parts, 2, "", Path(MomentsFile(op, hop)));
}

Result<std::vector<DigestedFile>> PropagationFolder::Digest(uint32_t threads) const {
  std::vector<std::string> names = {kNodesFile, kLabelsFile, RowFile(0, 0)};
  if (plan_.standardize) names.push_back(MomentsFile(0, 0));
  for (uint32_t op = 0; op < plan_.operators.size(); ++op) {
    for (uint32_t hop = 1; hop <= plan_.hops; ++hop) {
      names.push_back(RowFile(op, hop));
      if (plan_.standardize) names.push_back(MomentsFile(op, hop));
    }
  }
  std::vector<DigestedFile> files(names.size());
  const auto digest = [&](uint64_t i, uint64_t) -> Status {
    files[i] = GNND_VALUE(DigestFile(folder_, names[i]));
    return Status::Ok();
  };
  GNND_TRY(ForRanges(threads, names.size(), 1, digest));
  return files;
}

}  // namespace gnnd
