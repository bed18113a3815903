#include "core/executor/lender.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>

#include "core/executor/lend_messages.h"

namespace gnnd {
namespace {

// Between two signs of life.
constexpr int kLookMs = 200;
// Batches that one reader has at once: the one that it copies and the next, so that a copy's end
// and the next one's begin are not a round trip apart.
constexpr uint64_t kLoansOfRank = 2;

bool IsReady(Segment& segment, uint64_t batch) {
  const JobShape& shape = segment.shape();
  // Acquire: pairs with the release of the Sampler that published the record.
  const uint64_t word = segment.ledger(shape.IndexOfBatch(batch)).load(std::memory_order_acquire);
  const LedgerWord entry = LedgerWord::OfBatch(word, shape.EpochOfBatch(batch), shape.born_ready);
  return entry.state == BatchState::kReady;
}

Result<UniqueFd> ListenAt(const std::string& name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (name.empty() || name.size() + 1 > sizeof address.sun_path) {
    return Status(Code::kInvalidArgument, "the name of a socket has 1 to 107 bytes: " + name);
  }
  // The zero byte in front makes the name one of the abstract namespace, which has no file.
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  const auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  UniqueFd fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return SystemError(Code::kIo, "a socket for readers");
  if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), bytes) != 0 ||
      listen(fd.get(), SOMAXCONN) != 0) {
    return SystemError(Code::kIo, "listening at @" + name);
  }
  return fd;
}

// Whether the process at the other end has this process's user.
bool IsOwnUser(int fd) {
  ucred peer{};
  socklen_t bytes = sizeof peer;
  return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 && peer.uid == geteuid();
}

Result<UniqueFd> OpenForReading(const std::string& path) {
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return SystemError(Code::kIo, path + " cannot be opened for a reader");
  return fd;
}

}  // namespace

Result<std::unique_ptr<Lender>> Lender::Create(Segment& segment, ExecutorId id,
                                               LenderOptions options) {
  std::unique_ptr<Lender> lender(new Lender(segment, id));
  lender->lent_segment_ =
      GNND_VALUE(OpenForReading("/proc/self/fd/" + std::to_string(segment.fd())));
  if (!options.features_path.empty()) {
    lender->features_ = GNND_VALUE(OpenForReading(options.features_path));
  }
  lender->listener_ = GNND_VALUE(ListenAt(options.socket));
  lender->options_ = std::move(options);
  return lender;
}

void Lender::InitParameters(std::span<float> parameters) {
  std::fill(parameters.begin(), parameters.end(), 0.0F);
}

Status Lender::Extract(const Sample&, uint32_t, ExtractReport*) { return Status::Ok(); }

Status Lender::ComputeGradient(const Sample& sample, uint32_t, const ParametersView&,
                               std::span<float> gradient, BatchReport* report) {
  const uint64_t epoch = sample.key().epoch - segment_.config().first_epoch;
  due_ = epoch * segment_.shape().batches_per_epoch + sample.key().batch;
  GNND_TRY(AwaitReader(due_));
  if (offered_ <= due_) Offer(due_);
  GNND_TRY(AwaitReturn(due_));
  std::fill(gradient.begin(), gradient.end(), 0.0F);
  report->sums.items = sample.num_items();
  return Status::Ok();
}

uint64_t Lender::RankOf(uint64_t batch) const {
  const uint64_t before = segment_.config().first_epoch * segment_.shape().batches_per_epoch;
  return (before + batch) % readers_.size();
}

bool Lender::Joined(uint64_t batch) const {
  return !readers_.empty() && readers_[RankOf(batch)].socket.valid();
}

Status Lender::AwaitReader(uint64_t batch) {
  const auto begin = std::chrono::steady_clock::now();
  while (!Joined(batch)) {
    GNND_TRY(Look());
    if (std::chrono::steady_clock::now() - begin > options_.patience) {
      return End("no reader came for batch " + std::to_string(batch));
    }
  }
  return Status::Ok();
}

void Lender::Offer(uint64_t batch) {
  const LendOffer offer{batch};
  Peer& reader = PeerOf(batch);
  if (send(reader.socket.get(), &offer, sizeof offer, MSG_NOSIGNAL) != sizeof offer) {
    reader.gone = true;
  }
  offered_ = batch + 1;
}

void Lender::OfferAhead(uint64_t batch) {
  const JobShape& shape = segment_.shape();
  const uint64_t all = uint64_t{segment_.config().epochs} * shape.batches_per_epoch;
  const uint64_t end = std::min(all, batch + kLoansOfRank * readers_.size());
  while (offered_ < end && Joined(offered_) && !PeerOf(offered_).gone &&
         IsReady(segment_, offered_)) {
    Offer(offered_);
  }
}

Status Lender::AwaitReturn(uint64_t batch) {
  while (returned_.erase(batch) == 0) {
    if (PeerOf(batch).gone) return End("a reader has gone");
    OfferAhead(batch);
    GNND_TRY(Look());
  }
  return Status::Ok();
}

Status Lender::Look() {
  GNND_TRY(segment_.AbortStatus());
  log_.Heartbeat();
  const auto stop = static_cast<uint32_t>(Command::kStop);
  if (segment_.header().command.load(std::memory_order_acquire) >= stop) {
    return Status(Code::kAborted, "the job was told to stop");
  }
  std::vector<pollfd> polled{{listener_.get(), POLLIN, 0}};
  // A negative descriptor is passed over.
  for (const Peer& reader : readers_) {
    polled.push_back({reader.gone ? -1 : reader.socket.get(), POLLIN, 0});
  }
  if (poll(polled.data(), polled.size(), kLookMs) <= 0) return Status::Ok();
  for (uint64_t rank = 0; rank + 1 < polled.size(); ++rank) {
    if (polled[rank + 1].revents != 0) GNND_TRY(Collect(rank));
  }
  return polled[0].revents != 0 ? AcceptReader() : Status::Ok();
}

Status Lender::Collect(uint64_t rank) {
  Peer& reader = readers_[rank];
  while (true) {
    LendReturn returned;
    const ssize_t got = recv(reader.socket.get(), &returned, sizeof returned, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return Status::Ok();
    // A reader that goes with an offer unread resets its socket, which is told before what it had
    // returned.
    if (got < 0 && errno == ECONNRESET) continue;
    if (got != sizeof returned) {
      // Others may still copy batches before its next one.
      reader.gone = true;
      return Status::Ok();
    }
    const uint64_t batch = returned.batch;
    const bool was_lent = batch >= due_ && batch < offered_ && RankOf(batch) == rank;
    if (!was_lent || !returned_.insert(batch).second) {
      return End("a reader returned batch " + std::to_string(batch) + ", which was not lent");
    }
  }
}

Status Lender::AcceptReader() {
  UniqueFd reader(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!reader.valid() || !IsOwnUser(reader.get())) return Status::Ok();
  LendHello hello;
  // A reader says who it is at once; one that does not is let go.
  pollfd polled{reader.get(), POLLIN, 0};
  if (poll(&polled, 1, kLookMs) <= 0) return Status::Ok();
  if (recv(reader.get(), &hello, sizeof hello, MSG_DONTWAIT) != sizeof hello) return Status::Ok();
  const bool is_known = hello.magic == kLendMagic && hello.version == kLendVersion;
  if (!is_known || hello.world == 0 || hello.world > kMaxReaders || hello.rank >= hello.world) {
    return Status::Ok();
  }
  if (readers_.empty()) readers_.resize(hello.world);
  if (readers_.size() != hello.world || readers_[hello.rank].socket.valid()) return Status::Ok();
  GNND_TRY(Welcome(reader.get()));
  readers_[hello.rank].socket = std::move(reader);
  return Status::Ok();
}

Status Lender::Welcome(int reader) {
  LendWelcome welcome;
  const SegmentConfig& config = segment_.config();
  welcome.slots_at = segment_.slot_offset(0);
  welcome.slot_bytes = config.slot_bytes;
  welcome.num_slots = config.num_slots;
  welcome.batches_per_epoch = segment_.shape().batches_per_epoch;
  welcome.epochs = config.epochs;

  const std::array<int, 2> descriptors{lent_segment_.get(), features_.get()};
  const size_t rights_bytes = sizeof(int) * (features_.valid() ? 2 : 1);
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof descriptors)> control{};
  iovec bytes{&welcome, sizeof welcome};
  msghdr message{};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = CMSG_SPACE(rights_bytes);
  cmsghdr* rights = CMSG_FIRSTHDR(&message);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(rights_bytes);
  std::memcpy(CMSG_DATA(rights), descriptors.data(), rights_bytes);
  if (sendmsg(reader, &message, MSG_NOSIGNAL) != sizeof welcome) return End("a reader has gone");
  return Status::Ok();
}

Status Lender::End(const std::string& why) {
  segment_.Abort(Code::kAborted, why);
  return Status(Code::kAborted, why);
}

void Lender::Apply(const StepView& step) {
  std::copy(step.parameters_in.begin(), step.parameters_in.end(), step.parameters_out.begin());
  std::copy(step.optimizer_in.begin(), step.optimizer_in.end(), step.optimizer_out.begin());
}

void Lender::PredictParameters(uint64_t, uint64_t, std::span<const float> parameters,
                               std::span<const float>, std::span<float> predicted) {
  std::copy(parameters.begin(), parameters.end(), predicted.begin());
}

Result<EvalShape> Lender::PlanEvaluation(EvalNodes, const Alive&) { return EvalShape{}; }

Status Lender::EvaluateChunk(const EvalTask&, const ParametersView&, const Alive&, EvalResult*) {
  return Status::Ok();
}

Status Lender::Reduce(const ReduceTask&, const Alive&) { return Status::Ok(); }

Judgement Lender::Judge(const EvalResult&, std::span<std::byte>) const { return {}; }

void Lender::EndEvaluation(const EvalRun&) {}

Sha256Digest Lender::DigestOf(std::span<const float>) { return {}; }

}  // namespace gnnd
