#pragma once

#include "node/contract.h"

// What gnnd_train.node exports, one subject per file; src/native/gen declares it.

namespace gnnd::node {

void DefineTrainer(Subject& subject);
void DefinePredict(Subject& subject);

}  // namespace gnnd::node
