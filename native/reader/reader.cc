#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
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
#include "reader/greeting.h"

static_assert(GNND_READER_MAX_HOPS == gnnd::kMaxHops);

namespace gnnd {
namespace {

// Nodes, or edges, of a piece of work: some hundred kilobytes, which outlast a thread's waking.
constexpr uint64_t kPieceNodes = 1024;
constexpr uint64_t kPieceRows = 8192;

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
    if (greeting.features.valid()) GNND_TRY(reader->OpenFeatures(greeting.features.get()));
    return reader;
  }

  GnndReaderFacts facts() const {
    GnndReaderFacts facts{welcome_.batches_per_epoch, welcome_.epochs, 0, 0, 0};
    if (features_.dim() > 0) {
      facts.num_nodes = features_.num_rows();
      facts.num_features = features_.dim();
      facts.feature_bytes = BytesOf(features_.type());
    }
    return facts;
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
    if (sample_.key().batch != index) {
      return Status(Code::kShmCorrupted, "the slot holds another batch than the one that was lent");
    }
    lent_ = offer.batch;
    Describe(batch);
    return true;
  }

  Status Copy(const GnndArrays& arrays) {
    GNND_TRY(CheckOneType());
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
        CopyEdges(rows, edge_at, arrays.edges);
        CopyWeights(rows, arrays.weights);
        done = CopyNumbers(rows, arrays.graph, arrays.edge_numbers);
      }
      if (!done) is_sound.store(false, std::memory_order_relaxed);
    });
    return Soundness(is_sound.load(std::memory_order_relaxed));
  }

  Status Parts(GnndType* types, GnndBlock* blocks) const {
    GNND_TRY(CheckLent());
    for (uint32_t t = 0; t < sample_.num_node_types(); ++t) {
      types[t] = {sample_.nodes(t).size(), sample_.num_seeds(t)};
    }
    for (uint32_t b = 0; b < sample_.num_blocks(); ++b) {
      const BlockView& block = sample_.block(b);
      blocks[b] = {block.hop,     block.relation, block.src_type,  block.dst_type,
                   block.num_dst, block.num_src,  block.src.size()};
    }
    return Status::Ok();
  }

  Status CopyTyped(const GnndTypeArrays* types, std::span<const GnndRelationArrays> relations) {
    GNND_TRY(CheckLent());
    std::vector<Nodes> lists;
    for (uint32_t t = 0; t < sample_.num_node_types(); ++t) {
      const uint64_t count = sample_.nodes(t).size();
      for (uint64_t at = 0; at < count; at += kPieceNodes) {
        lists.push_back({t, at, std::min(kPieceNodes, count - at)});
      }
    }
    std::vector<uint64_t> num_edges(relations.size());
    std::vector<Rows> pieces;
    GNND_TRY(AddRelations(&num_edges, &pieces));
    std::atomic<bool> is_sound{true};
    crew_.Run(lists.size() + pieces.size(), [&](uint64_t piece) {
      bool done = true;
      if (piece < lists.size()) {
        done = CopyNodes(lists[piece], types[lists[piece].type]);
      } else {
        const Rows& rows = pieces[piece - lists.size()];
        const uint32_t relation = rows.block->relation;
        CopyEdges(rows, num_edges[relation], relations[relation].edges);
        done = CopyNumbers(rows, relations[relation].graph, relations[relation].edge_numbers);
      }
      if (!done) is_sound.store(false, std::memory_order_relaxed);
    });
    return Soundness(is_sound.load(std::memory_order_relaxed));
  }

  Status CopyHop(uint32_t hop, const GnndHopArrays& arrays) {
    GNND_TRY(CheckOneType());
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

  Status OpenFeatures(int fd) {
    array_ = GNND_VALUE(NpyArray::Open("/proc/self/fd/" + std::to_string(fd)));
    if (array_.shape().size() != 2 ||
        (array_.type() != NpyType::kFloat32 && array_.type() != NpyType::kFloat16)) {
      return Status(Code::kDatasetCorrupt, "the features are no rows of float32 or float16");
    }
    features_ = array_.type() == NpyType::kFloat16
                    ? RowTable(array_.values<Half>(), array_.shape()[1])
                    : RowTable(array_.values<float>(), array_.shape()[1]);
    return Status::Ok();
  }

  Status CheckLent() const {
    return lent_ ? Status::Ok() : Status(Code::kInvalidArgument, "no batch is lent");
  }

  Status CheckOneType() const {
    GNND_TRY(CheckLent());
    if (sample_.homogeneous()) return Status::Ok();
    return Status(Code::kInvalidArgument, "the batch is over several types or relations");
  }

  void Describe(GnndBatch* batch) const {
    *batch = {};
    batch->epoch = sample_.key().epoch;
    batch->index = *lent_ % welcome_.batches_per_epoch;
    batch->num_seeds = sample_.num_seeds();
    for (uint32_t t = 0; t < sample_.num_node_types(); ++t) {
      batch->num_nodes += sample_.nodes(t).size();
    }
    batch->num_edges = sample_.num_edges();
    batch->num_hops = sample_.num_hops();
    batch->num_types = sample_.num_node_types();
    batch->num_blocks = sample_.num_blocks();
    batch->shared = sample_.shares_rows() ? 1 : 0;
    batch->num_pairs = sample_.pairs().source.size();
    batch->num_negatives = sample_.pairs().in_batch ? 0 : sample_.pairs().per_pair;
    for (uint32_t h = 0; sample_.homogeneous() && h < sample_.num_blocks(); ++h) {
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

  // A piece of work: nodes of a type.
  struct Nodes {
    uint32_t type;
    uint64_t begin;
    uint64_t count;
  };

  // False where a node is not in a table.
  bool CopyNodes(const Nodes& piece, const GnndTypeArrays& arrays) const {
    const std::span<const uint32_t> all = sample_.nodes(piece.type);
    const auto nodes = all.subspan(piece.begin, piece.count);
    if (arrays.nodes != nullptr) std::copy(nodes.begin(), nodes.end(), arrays.nodes + piece.begin);
    return std::ranges::all_of(std::span(arrays.tables, arrays.num_tables), [&](const auto& table) {
      return CopyTable(table, nodes, piece.begin, all.size());
    });
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

  // Pieces of all edges, each of them once, and how many each relation has.
  Status AddRelations(std::vector<uint64_t>* num_edges, std::vector<Rows>* pieces) const {
    std::vector<const BlockView*> last(num_edges->size());
    for (uint32_t b = 0; b < sample_.num_blocks(); ++b) {
      const BlockView& block = sample_.block(b);
      if (block.relation >= last.size()) {
        return Status(Code::kInvalidArgument, "the batch has more relations");
      }
      uint64_t& count = (*num_edges)[block.relation];
      last[block.relation] = &block;
      if (sample_.shares_rows()) {
        count = block.src.size();
        continue;
      }
      AddPieces(block, count, pieces);
      count += block.src.size();
    }
    for (const BlockView* block : last) {
      if (sample_.shares_rows() && block != nullptr) AddPieces(*block, 0, pieces);
    }
    return Status::Ok();
  }

  static Status Soundness(bool is_sound) {
    if (is_sound) return Status::Ok();
    return Status(Code::kShmCorrupted, "the record names a node or an edge that the graph lacks");
  }

  // To [2, num_edges].
  static void CopyEdges(const Rows& rows, uint64_t num_edges, int64_t* edges) {
    if (edges == nullptr) return;
    const BlockView& block = *rows.block;
    const uint64_t from = block.indptr[rows.begin];
    const auto src = block.src.subspan(from, block.indptr[rows.end] - from);
    std::copy(src.begin(), src.end(), edges + rows.at + from);
    int64_t* dst = edges + num_edges + rows.at;
    for (uint64_t row = rows.begin; row < rows.end; ++row) {
      std::fill(dst + block.indptr[row], dst + block.indptr[row + 1], static_cast<int64_t>(row));
    }
  }

  static void CopyWeights(const Rows& rows, float* weights) {
    const BlockView& block = *rows.block;
    if (weights == nullptr || block.weight.empty()) return;
    const uint64_t from = block.indptr[rows.begin];
    const auto weight = block.weight.subspan(from, block.indptr[rows.end] - from);
    std::copy(weight.begin(), weight.end(), weights + rows.at + from);
  }

  bool CopyNumbers(const Rows& rows, const GnndEdges* graph, int64_t* numbers) const {
    if (graph == nullptr || numbers == nullptr) return true;
    const BlockView& block = *rows.block;
    return EdgeNumbers(*graph, sample_.key(), sample_.nodes(block.dst_type),
                       sample_.nodes(block.src_type))
        .Write(block, rows.begin, rows.end, numbers + rows.at);
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

int gnnd_reader_parts(GnndReader* reader, GnndType* types, GnndBlock* blocks) {
  return Kept(reader, [&] { return reader->reader->Parts(types, blocks); });
}

int gnnd_reader_copy_typed(GnndReader* reader, const GnndTypeArrays* types,
                           const GnndRelationArrays* relations, uint64_t num_relations) {
  return Kept(reader, [&] { return reader->reader->CopyTyped(types, {relations, num_relations}); });
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
