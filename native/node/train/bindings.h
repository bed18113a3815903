#pragma once

#include <napi.h>

namespace gnnd::node {

void DefinePredict(Napi::Env env, Napi::Object exports);

}  // namespace gnnd::node
