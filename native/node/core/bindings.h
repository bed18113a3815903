#pragma once

#include <napi.h>

#include "node/convert.h"
#include "node/run_on_thread.h"

// What gnnd_core.node exports, one group of functions per file; src/native/contract.ts lists them
// with their types in the same order.

namespace gnnd::node {

void DefineHost(Napi::Env env, Napi::Object exports);
void DefineDataset(Napi::Env env, Napi::Object exports);
void DefineModel(Napi::Env env, Napi::Object exports);
void DefineSegment(Napi::Env env, Napi::Object exports);
void DefineSampler(Napi::Env env, Napi::Object exports);
void DefineCache(Napi::Env env, Napi::Object exports);

}  // namespace gnnd::node
