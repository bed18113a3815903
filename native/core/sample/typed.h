#pragma once

#include <cstddef>
#include <cstdint>

#include "core/base/status.h"
#include "core/batch/layout.h"
#include "core/graph/schema.h"
#include "core/item/links.h"
#include "core/sample/options.h"

// What a job over several types may sample, and how its records lie.

namespace gnnd {

// kInvalidArgument: names what a sampler of several types does not do (links, walks, plug-ins,
// draws by edge weight or with locality, GCN's weights), or says that the fanouts of relations
// are not one list of as many hops as `fanouts` for each of `num_relations`.
Status CheckTyped(const SamplerOptions& options, const LinkOptions& links, size_t num_relations);

// The layout of records whose seeds are up to `batch_size` nodes of type 0. kInvalidArgument: what
// CheckSchema, CheckTyped or RecordLayout::Of refuses.
Result<RecordLayout> LayoutOf(const Schema& schema, uint32_t batch_size,
                              const SamplerOptions& options);

}  // namespace gnnd
