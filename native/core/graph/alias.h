#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/graph/topology_view.h"

// Alias tables (Walker 1977; built by Vose's method, IEEE TSE 1991) draw a neighbour of a row in
// proportion to its edge weight with two random numbers, whatever the row's degree. All steps but
// the first use integers in a fixed order, because the tables decide the bits of samples:
//
//   q_i = floor(w_i / max(w) * 2^31) in float64, at least 1 where w_i > 0; T = sum of q
//   each slot holds T units, entry i brings q_i * d of them (d entries); an entry with exactly T is
//   full, with less it is small, with more large. Small and large are stacks, filled in row order.
//   While there is a small entry: take the last small s and the last large l; slot s keeps its own
//   units and gets the rest from l; l goes on with what it has left, as full, small or large.
//
// A slot's entry is {threshold, alias}: a 32-bit draw below the threshold takes the slot itself,
// any other takes the alias. threshold = floor(own units / T * 2^32), at least 1 where there are
// any; a full slot is {2^32 - 1, itself}. So threshold 0 says "weight 0". A row whose weights are
// all 0 has no neighbours: its entries are {0, themselves}.

namespace gnnd {

// Builds tables row by row; its buffers grow with the longest row.
class AliasBuilder {
 public:
  // Writes the table of one row. `weights` are finite and not negative; below 2^32 of them.
  void Build(std::span<const float> weights, AliasEntry* row);

 private:
  std::vector<uint64_t> units_;
  std::vector<uint32_t> small_;
  std::vector<uint32_t> large_;
};

}  // namespace gnnd
