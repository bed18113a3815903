#include "node/addon.h"

#include "node/core/bindings.h"

namespace gnnd::node {
namespace {

Napi::Object Init(Napi::Env env, Napi::Object exports) {
  return Define(env, exports,
                {{"host", DefineHost},
                 {"dataset", DefineDataset},
                 {"table", DefineTable},
                 {"model", DefineModel},
                 {"segment", DefineSegment},
                 {"sampler", DefineSampler},
                 {"lender", DefineLender},
                 {"cache", DefineCache},
                 {"propagation", DefinePropagation}});
}

}  // namespace
}  // namespace gnnd::node

using gnnd::node::Init;
NODE_API_MODULE(gnnd_core, Init)
