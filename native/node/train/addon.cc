#include "node/addon.h"

#include "node/train/bindings.h"

namespace gnnd::node {
namespace {

Napi::Object Init(Napi::Env env, Napi::Object exports) {
  return Define(env, exports, {{"trainer", DefineTrainer}, {"predict", DefinePredict}});
}

}  // namespace
}  // namespace gnnd::node

using gnnd::node::Init;
NODE_API_MODULE(gnnd_train, Init)
