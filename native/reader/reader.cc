#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/base/contain.h"
#include "core/base/mapping.h"
#include "core/base/memfd.h"
#include "core/base/status.h"
#include "core/batch/record.h"
#include "core/executor/lend_messages.h"
#include "core/graph/npy.h"
#include "core/graph/row_table.h"
#include "reader/crew.h"
#include "reader/edge_numbers.h"
#include "reader/gather.h"
#include "reader/gnnd_reader.h"

static_assert(GNND_READER_MAX_HOPS == gnnd::kMaxHops);

namespace gnnd {
namespace {

// Nodes, or edges, of a piece of work: some hundred kilobytes, which outlast a thread's waking.
constexpr uint64_t kPieceNodes = 1024;
constexpr uint64_t kPieceRows = 8192;
constexpr int kGreetingMs = 10'000;

Result<UniqueFd> ConnectTo(const std::string& name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (name.empty() || name.size() + 1 > sizeof address.sun_path) {
    return Status(Code::kInvalidArgument, "the name of a socket has 1 to 107 bytes: " + name);
  }
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  const auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  UniqueFd fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!fd.valid() || connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), bytes) != 0) {
    return SystemError(Code::kNotFound, "connecting to @" + name);
  }
  ucred peer{};
  socklen_t peer_bytes = sizeof peer;
  if (getsockopt(fd.get(), SOL_SOCKET, SO_PEERCRED, &peer, &peer_bytes) != 0 ||
      peer.uid != geteuid()) {
    return Status(Code::kIo, "the daemon runs as another user than this process");
  }
  return fd;
}

// True once there is something to read, or the other end has gone.
bool Readable(int fd, int timeout_ms) {
  pollfd polled{fd, POLLIN, 0};
  return poll(&polled, 1, timeout_ms) > 0;
}

struct Greeting {
  LendWelcome welcome;
  UniqueFd segment;
  UniqueFd features;
};

Result<Greeting> Greet(int fd, const LendHello& hello) {
  const Status refused(Code::kIo,
                       "the lender did not answer: it is of another version, has this rank "
                       "already, or expects another number of readers");
  if (send(fd, &hello, sizeof hello, MSG_NOSIGNAL) != sizeof hello) return refused;
  if (!Readable(fd, kGreetingMs)) return refused;
  Greeting greeting;
  std::array<int, 2> descriptors{-1, -1};
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof descriptors)> control{};
  iovec bytes{&greeting.welcome, sizeof greeting.welcome};
  msghdr message{};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t got = recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
  const cmsghdr* rights = got <= 0 ? nullptr : CMSG_FIRSTHDR(&message);
  if (rights == nullptr || rights->cmsg_type != SCM_RIGHTS ||
      rights->cmsg_len != CMSG_LEN(sizeof descriptors)) {
    return refused;
  }
  std::memcpy(descriptors.data(), CMSG_DATA(rights), sizeof descriptors);
  greeting.segment = UniqueFd(descriptors[0]);
  greeting.features = UniqueFd(descriptors[1]);
  const LendWelcome& welcome = greeting.welcome;
  const bool is_known = got == sizeof welcome && welcome.magic == kLendMagic &&
                        welcome.version == kLendVersion && welcome.num_slots > 0 &&
                        welcome.batches_per_epoch > 0;
  if (!is_known) return refused;
  return greeting;
}

}  // namespace

class Reader {
 public:
  static Result<std::unique_ptr<Reader>> Open(const std::string& socket, const LendHello& hello,
                                              uint32_t threads) {
    std::unique_ptr<Reader> reader(new Reader(threads));
    reader->socket_ = GNND_VALUE(ConnectTo(socket));
    Greeting greeting = GNND_VALUE(Greet(reader->socket_.get(), hello));
    reader->welcome_ = greeting.welcome;
    reader->segment_ = GNND_VALUE(Mapping::Map(greeting.segment.get(), false));
    const LendWelcome& welcome = greeting.welcome;
    const uint64_t room =
        reader->segment_.size() - std::min(reader->segment_.size(), welcome.slots_at);
    if (welcome.slot_bytes == 0 || room / welcome.slot_bytes < welcome.num_slots) {
      return Status(Code::kShmCorrupted, "the segment is smaller than its slots");
    }
    const std::string path = "/proc/self/fd/" + std::to_string(greeting.features.get());
    reader->array_ = GNND_VALUE(NpyArray::Open(path));
    const NpyArray& array = reader->array_;
    if (array.shape().size() != 2 ||
        (array.type() != NpyType::kFloat32 && array.type() != NpyType::kFloat16)) {
      return Status(Code::kDatasetCorrupt, "the features are no rows of float32 or float16");
    }
    reader->features_ = array.type() == NpyType::kFloat16
                            ? RowTable(array.values<Half>(), array.shape()[1])
                            : RowTable(array.values<float>(), array.shape()[1]);
    return reader;
  }

  GnndReaderFacts facts() const {
    return {welcome_.batches_per_epoch, welcome_.epochs, features_.num_rows(), features_.dim(),
            BytesOf(features_.type())};
  }

  // False: no batch came in time.
  Result<bool> Next(int timeout_ms, GnndBatch* batch) {
    if (lent_) return Status(Code::kInvalidArgument, "the batch before was not returned");
    if (!Readable(socket_.get(), timeout_ms)) return false;
    LendOffer offer;
    const ssize_t got = recv(socket_.get(), &offer, sizeof offer, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return false;
    if (got != sizeof offer) return Status(Code::kAborted, "the lender has gone");
    const uint64_t slot = offer.batch % welcome_.num_slots;
    sample_ = GNND_VALUE(OpenRecord(segment_.bytes().subspan(
        welcome_.slots_at + slot * welcome_.slot_bytes, welcome_.slot_bytes)));
    const uint64_t index = offer.batch % welcome_.batches_per_epoch;
    if (sample_.key().batch != index || !sample_.homogeneous()) {
      return Status(Code::kShmCorrupted, "the slot holds another batch than the one that was lent");
    }
    lent_ = offer.batch;
    Describe(batch);
    return true;
  }

  Status Copy(const GnndArrays& arrays) {
    GNND_TRY(CheckLent());
    const std::span<const uint32_t> nodes = sample_.nodes();
    const uint64_t node_pieces = (nodes.size() + kPieceNodes - 1) / kPieceNodes;
    const uint64_t first = sample_.shares_rows() ? sample_.num_blocks() - 1 : 0;
    uint64_t edge_at = 0;
    std::vector<Rows> pieces;
    for (uint64_t b = first; b < sample_.num_blocks(); ++b) {
      const BlockView& block = sample_.block(static_cast<uint32_t>(b));
      AddPieces(block, edge_at, &pieces);
      edge_at += block.src.size();
    }
    std::atomic<bool> is_sound{true};
    crew_.Run(node_pieces + pieces.size(), [&](uint64_t piece) {
      bool done = true;
      if (piece < node_pieces) {
        const uint64_t begin = piece * kPieceNodes;
        const auto part = nodes.subspan(begin, std::min(kPieceNodes, nodes.size() - begin));
        done = CopyNodes(part, begin, arrays);
      } else {
        const Rows& rows = pieces[piece - node_pieces];
        CopyEdges(rows, edge_at, arrays);
        done = CopyNumbers(rows, arrays.graph, arrays.edge_numbers);
      }
      if (!done) is_sound.store(false, std::memory_order_relaxed);
    });
    return Soundness(is_sound.load(std::memory_order_relaxed));
  }

  Status CopyHop(uint32_t hop, const GnndHopArrays& arrays) {
    GNND_TRY(CheckLent());
    if (hop >= sample_.num_blocks()) {
      return Status(Code::kInvalidArgument, "the batch has fewer hops");
    }
    const BlockView& block = sample_.block(hop);
    const auto copy = [](auto values, auto* out) {
      if (out != nullptr) std::copy(values.begin(), values.end(), out);
    };
    copy(block.indptr, arrays.indptr);
    copy(block.src, arrays.src);
    copy(block.weight, arrays.weights);
    if (arrays.edge_numbers == nullptr) return Status::Ok();
    std::vector<Rows> pieces;
    AddPieces(block, 0, &pieces);
    std::atomic<bool> is_sound{true};
    crew_.Run(pieces.size(), [&](uint64_t piece) {
      if (!CopyNumbers(pieces[piece], arrays.graph, arrays.edge_numbers)) {
        is_sound.store(false, std::memory_order_relaxed);
      }
    });
    return Soundness(is_sound.load(std::memory_order_relaxed));
  }

  Status CopyPairs(const GnndPairArrays& arrays) const {
    GNND_TRY(CheckLent());
    const auto& pairs = sample_.pairs();
    const auto copy = [](std::span<const uint32_t> values, int64_t* out) {
      if (out != nullptr) std::copy(values.begin(), values.end(), out);
    };
    copy(pairs.items, arrays.items);
    copy(pairs.source, arrays.ends);
    if (arrays.ends != nullptr) copy(pairs.destination, arrays.ends + pairs.source.size());
    if (!pairs.in_batch) copy(pairs.negatives, arrays.negatives);
    return Status::Ok();
  }

  Status Return() {
    GNND_TRY(CheckLent());
    const LendReturn returned{*lent_};
    lent_.reset();
    sample_ = Sample();
    if (send(socket_.get(), &returned, sizeof returned, MSG_NOSIGNAL) == sizeof returned) {
      return Status::Ok();
    }
    return Status(Code::kAborted, "the lender has gone");
  }

  std::string error;

 private:
  explicit Reader(uint32_t threads) : crew_(threads) {}

  Status CheckLent() const {
    return lent_ ? Status::Ok() : Status(Code::kInvalidArgument, "no batch is lent");
  }

  void Describe(GnndBatch* batch) const {
    *batch = {};
    batch->epoch = sample_.key().epoch;
    batch->index = *lent_ % welcome_.batches_per_epoch;
    batch->num_seeds = sample_.num_seeds();
    batch->num_nodes = sample_.nodes().size();
    batch->num_edges = sample_.num_edges();
    batch->num_hops = sample_.num_blocks();
    batch->shared = sample_.shares_rows() ? 1 : 0;
    batch->num_pairs = sample_.pairs().source.size();
    batch->num_negatives = sample_.pairs().in_batch ? 0 : sample_.pairs().per_pair;
    for (uint32_t h = 0; h < sample_.num_blocks(); ++h) {
      const BlockView& block = sample_.block(h);
      batch->hops[h] = {block.num_dst, block.num_src, block.src.size()};
      if (!block.weight.empty()) batch->weighted = 1;
    }
  }

  // False where a node is not in a table.
  bool CopyNodes(std::span<const uint32_t> nodes, uint64_t begin, const GnndArrays& arrays) const {
    if (arrays.nodes != nullptr) std::copy(nodes.begin(), nodes.end(), arrays.nodes + begin);
    for (const GnndTable& table : std::span(arrays.tables, arrays.num_tables)) {
      if (!CopyTable(table, nodes, begin, sample_.nodes().size())) return false;
    }
    if (arrays.features == nullptr) return true;
    const GnndTable own{features_.bytes().data(), features_.num_rows(), features_.row_bytes(),
                        arrays.features};
    return CopyTable(own, nodes, begin, sample_.nodes().size());
  }

  // A piece of work: rows of a block, whose edges begin at `at` in the caller's arrays.
  struct Rows {
    const BlockView* block;
    uint64_t begin;
    uint64_t end;
    uint64_t at;
  };

  static void AddPieces(const BlockView& block, uint64_t at, std::vector<Rows>* pieces) {
    for (uint64_t row = 0; row < block.num_dst; row += kPieceRows) {
      pieces->push_back({&block, row, std::min<uint64_t>(row + kPieceRows, block.num_dst), at});
    }
  }

  static Status Soundness(bool is_sound) {
    if (is_sound) return Status::Ok();
    return Status(Code::kShmCorrupted, "the record names a node or an edge that the graph lacks");
  }

  static void CopyEdges(const Rows& rows, uint64_t num_edges, const GnndArrays& arrays) {
    const BlockView& block = *rows.block;
    const uint64_t from = block.indptr[rows.begin];
    const uint64_t count = block.indptr[rows.end] - from;
    if (arrays.edges != nullptr) {
      const auto src = block.src.subspan(from, count);
      std::copy(src.begin(), src.end(), arrays.edges + rows.at + from);
      int64_t* dst = arrays.edges + num_edges + rows.at;
      for (uint64_t row = rows.begin; row < rows.end; ++row) {
        std::fill(dst + block.indptr[row], dst + block.indptr[row + 1], static_cast<int64_t>(row));
      }
    }
    if (arrays.weights != nullptr && !block.weight.empty()) {
      const auto weight = block.weight.subspan(from, count);
      std::copy(weight.begin(), weight.end(), arrays.weights + rows.at + from);
    }
  }

  bool CopyNumbers(const Rows& rows, const GnndEdges* graph, int64_t* numbers) const {
    if (graph == nullptr || numbers == nullptr) return true;
    return EdgeNumbers(*graph, sample_.key(), sample_.nodes())
        .Write(*rows.block, rows.begin, rows.end, numbers + rows.at);
  }

  UniqueFd socket_;
  LendWelcome welcome_;
  Mapping segment_;
  NpyArray array_;
  RowTable features_;
  Sample sample_;                 // of the batch that is lent
  std::optional<uint64_t> lent_;  // counted over the job
  CopyCrew crew_;
};

}  // namespace gnnd

struct GnndReader {
  std::unique_ptr<gnnd::Reader> reader;
};

namespace {

// Runs a call of the interface, keeps what failed, and answers 0, or -1 on failure.
template <typename Call>
int Kept(GnndReader* reader, const Call& call) {
  const gnnd::Status status = gnnd::Contained(call);
  reader->reader->error = status.message();
  return status.ok() ? 0 : -1;
}

}  // namespace

GnndReader* gnnd_reader_open(const char* socket, uint32_t rank, uint32_t world, uint32_t threads,
                             char* error, size_t error_bytes) {
  using gnnd::Reader;
  auto opened = gnnd::Contained([&]() -> gnnd::Result<GnndReader*> {
    gnnd::LendHello hello;
    hello.rank = rank;
    hello.world = world;
    auto reader = GNND_VALUE(Reader::Open(socket, hello, std::max(1U, threads)));
    return new GnndReader{std::move(reader)};
  });
  if (opened.ok()) return *opened;
  if (error_bytes > 0) {
    const std::string& why = opened.status().message();
    const size_t bytes = std::min(why.size(), error_bytes - 1);
    std::memcpy(error, why.data(), bytes);
    error[bytes] = '\0';
  }
  return nullptr;
}

void gnnd_reader_facts(const GnndReader* reader, GnndReaderFacts* facts) {
  *facts = reader->reader->facts();
}

int gnnd_reader_next(GnndReader* reader, int timeout_ms, GnndBatch* batch) {
  bool came = false;
  const int failed = Kept(reader, [&]() -> gnnd::Status {
    came = GNND_VALUE(reader->reader->Next(timeout_ms, batch));
    return gnnd::Status::Ok();
  });
  if (failed != 0) return GNND_READER_GONE;
  return came ? GNND_READER_BATCH : GNND_READER_NONE;
}

int gnnd_reader_copy(GnndReader* reader, const GnndArrays* arrays) {
  return Kept(reader, [&] { return reader->reader->Copy(*arrays); });
}

int gnnd_reader_copy_hop(GnndReader* reader, uint32_t hop, const GnndHopArrays* arrays) {
  return Kept(reader, [&] { return reader->reader->CopyHop(hop, *arrays); });
}

int gnnd_reader_copy_pairs(GnndReader* reader, const GnndPairArrays* arrays) {
  return Kept(reader, [&] { return reader->reader->CopyPairs(*arrays); });
}

int gnnd_reader_return(GnndReader* reader) {
  return Kept(reader, [&] { return reader->reader->Return(); });
}

const char* gnnd_reader_error(const GnndReader* reader) { return reader->reader->error.c_str(); }

void gnnd_reader_close(GnndReader* reader) { delete reader; }
