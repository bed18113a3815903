#pragma once

#include <napi.h>

#include <functional>
#include <memory>
#include <thread>
#include <utility>

#include "node/convert.h"

namespace gnnd::node {

// Runs `work` on a thread of its own and returns a promise of what `convert` makes of its value on
// the JavaScript thread. Not on libuv's pool: an executor's loop lasts as long as the job, and four
// pool threads serve the whole process. `work` must not touch JavaScript.
template <typename T>
Napi::Promise RunOnThread(Napi::Env env, std::function<Result<T>()> work,
                          std::function<Napi::Value(Napi::Env, T&)> convert) {
  struct Call {
    Napi::Promise::Deferred deferred;
    Napi::ThreadSafeFunction done;
    std::function<Result<T>()> work;
    std::function<Napi::Value(Napi::Env, T&)> convert;
    std::unique_ptr<Result<T>> result;
  };
  auto* call =
      new Call{Napi::Promise::Deferred::New(env), {}, std::move(work), std::move(convert), {}};
  const Napi::Promise promise = call->deferred.Promise();
  call->done = Napi::ThreadSafeFunction::New(
      env, Napi::Function::New(env, [](const Napi::CallbackInfo&) {}), "gnnd", 1, 1);
  std::thread([call] {
    call->result = std::make_unique<Result<T>>(call->work());
    const auto settle = [](Napi::Env js, Napi::Function, Call* finished) {
      const std::unique_ptr<Call> owned(finished);
      if (owned->result->ok()) {
        owned->deferred.Resolve(owned->convert(js, **owned->result));
      } else {
        owned->deferred.Reject(ErrorOf(js, owned->result->status()).Value());
      }
    };
    Napi::ThreadSafeFunction done = call->done;
    done.BlockingCall(call, settle);
    done.Release();
  }).detach();
  return promise;
}

// The same for work that yields nothing.
inline Napi::Promise RunOnThread(Napi::Env env, std::function<Status()> work) {
  return RunOnThread<bool>(
      env,
      [work = std::move(work)]() -> Result<bool> {
        GNND_TRY(work());
        return true;
      },
      [](Napi::Env js, bool&) { return js.Undefined(); });
}

}  // namespace gnnd::node
