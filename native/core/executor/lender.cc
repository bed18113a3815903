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
  lender->features_ = GNND_VALUE(OpenForReading(options.features_path));
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
  const uint64_t batch = epoch * segment_.shape().batches_per_epoch + sample.key().batch;
  const int reader = GNND_VALUE(AwaitReader(batch));
  const LendOffer offer{batch};
  if (send(reader, &offer, sizeof offer, MSG_NOSIGNAL) != sizeof offer) {
    return End("a reader has gone");
  }
  GNND_TRY(AwaitReturn(batch, reader));
  std::fill(gradient.begin(), gradient.end(), 0.0F);
  report->sums.items = sample.num_seeds();
  return Status::Ok();
}

Result<int> Lender::AwaitReader(uint64_t batch) {
  const auto begin = std::chrono::steady_clock::now();
  while (readers_.empty() || !readers_[batch % readers_.size()].valid()) {
    static_cast<void>(GNND_VALUE(Look(-1)));
    if (std::chrono::steady_clock::now() - begin > options_.patience) {
      return End("no reader came for batch " + std::to_string(batch));
    }
  }
  return readers_[batch % readers_.size()].get();
}

Status Lender::AwaitReturn(uint64_t batch, int reader) {
  while (true) {
    if (!GNND_VALUE(Look(reader))) continue;
    LendReturn returned;
    const ssize_t got = recv(reader, &returned, sizeof returned, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (got != sizeof returned) return End("a reader has gone");
    if (returned.batch == batch) return Status::Ok();
    return End("a reader returned batch " + std::to_string(returned.batch) +
               ", which was not lent");
  }
}

Result<bool> Lender::Look(int also) {
  GNND_TRY(segment_.AbortStatus());
  log_.Heartbeat();
  const auto stop = static_cast<uint32_t>(Command::kStop);
  if (segment_.header().command.load(std::memory_order_acquire) >= stop) {
    return Status(Code::kAborted, "the job was told to stop");
  }
  std::array<pollfd, 2> polled{{{listener_.get(), POLLIN, 0}, {also, POLLIN, 0}}};
  if (poll(polled.data(), also < 0 ? 1 : 2, kLookMs) <= 0) return false;
  if (polled[0].revents != 0) GNND_TRY(AcceptReader());
  return polled[1].revents != 0;
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
  if (readers_.size() != hello.world || readers_[hello.rank].valid()) return Status::Ok();
  GNND_TRY(Welcome(reader.get()));
  readers_[hello.rank] = std::move(reader);
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
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof descriptors)> control{};
  iovec bytes{&welcome, sizeof welcome};
  msghdr message{};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* rights = CMSG_FIRSTHDR(&message);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(sizeof descriptors);
  std::memcpy(CMSG_DATA(rights), descriptors.data(), sizeof descriptors);
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
