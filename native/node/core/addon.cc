#include "node/core/bindings.h"

namespace {

Napi::Object Init(Napi::Env env, Napi::Object exports) {
  gnnd::node::DefineHost(env, exports);
  gnnd::node::DefineDataset(env, exports);
  gnnd::node::DefineModel(env, exports);
  gnnd::node::DefineSegment(env, exports);
  gnnd::node::DefineSampler(env, exports);
  gnnd::node::DefineCache(env, exports);
  return exports;
}

}  // namespace

NODE_API_MODULE(gnnd_core, Init)
