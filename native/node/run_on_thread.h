#pragma once

#include <napi.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "core/base/contain.h"
#include "node/convert.h"

namespace gnnd::node {

// A piece of work that goes to a thread and comes back as a promise's value.
template <typename T>
struct ThreadCall {
  Napi::Promise::Deferred deferred;
  std::function<Result<T>()> work;
  std::function<Napi::Value(Napi::Env, T&)> convert;
  std::optional<Result<T>> result;

  // Called on the JavaScript thread. An exception from `convert` rejects the promise, too.
  void Settle(Napi::Env env) {
    try {
      if (result->ok()) return deferred.Resolve(convert(env, **result));
      deferred.Reject(ErrorOf(env, result->status()).Value());
    } catch (const Napi::Error& error) {
      deferred.Reject(error.Value());
    } catch (const std::exception& error) {
      deferred.Reject(Napi::Error::New(env, error.what()).Value());
    }
  }
};

// exit() in user code on one of our threads would run destructors while other threads still use the
// objects, which might kill the process. So it ends at once, with the status that was asked for.
inline thread_local bool on_worker_thread = false;
inline void EndAtOnceOnWorkerThreads() {
  static const int registered = on_exit(
      [](int status, void*) {
        if (on_worker_thread) _exit(status);
      },
      nullptr);
  static_cast<void>(registered);
}

// Runs `work` on a thread of its own and returns a promise of `convert`(its value), called on the
// JavaScript thread. It does not use libuv's pool: an executor's loop lasts as long as the job, and
// four pool threads serve the whole process. `work` must not touch JavaScript. Exceptions from it,
// or the lack of a thread, reject the promise (core/base/contain.h).
template <typename T>
Napi::Promise RunOnThread(Napi::Env env, std::function<Result<T>()> work,
                          std::function<Napi::Value(Napi::Env, T&)> convert) {
  auto call = std::make_unique<ThreadCall<T>>(ThreadCall<T>{
      Napi::Promise::Deferred::New(env), std::move(work), std::move(convert), std::nullopt});
  const Napi::Promise promise = call->deferred.Promise();
  auto done = Napi::ThreadSafeFunction::New(
      env, Napi::Function::New(env, [](const Napi::CallbackInfo&) {}), "gnnd", 1, 1);
  EndAtOnceOnWorkerThreads();
  const Status started = Contained([&done, raw = call.get()] {
    std::thread([done, raw]() mutable {
      on_worker_thread = true;
      raw->result.emplace(Contained(raw->work));
      done.BlockingCall(raw, [](Napi::Env js, Napi::Function, ThreadCall<T>* finished) {
        const std::unique_ptr<ThreadCall<T>> owned(finished);
        owned->Settle(js);
      });
      done.Release();
    }).detach();
    return Status::Ok();
  });
  if (started.ok()) {
    static_cast<void>(call.release());  // the thread owns it, then its settling
  } else {
    call->result.emplace(started);
    call->Settle(env);
    done.Release();
  }
  return promise;
}

// RunOnThread for work without a value.
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
