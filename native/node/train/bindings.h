#pragma once

#include "node/contract.h"

// The exports of gnnd_train.node, one subject per file; src/native/gen declares them.

namespace gnnd::node {

void DefineTrainer(Subject& subject);
void DefinePredict(Subject& subject);

}  // namespace gnnd::node
