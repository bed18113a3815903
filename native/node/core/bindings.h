#pragma once

#include "node/contract.h"

// The exports of gnnd_core.node, one subject per file; src/native/gen declares them.

namespace gnnd::node {

void DefineHost(Subject& subject);
void DefineDataset(Subject& subject);
void DefineTable(Subject& subject);
void DefineModel(Subject& subject);
void DefineSegment(Subject& subject);
void DefineSampler(Subject& subject);
void DefineLender(Subject& subject);
void DefineCache(Subject& subject);
void DefinePropagation(Subject& subject);

}  // namespace gnnd::node
