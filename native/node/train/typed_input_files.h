#pragma once

#include <cstdint>
#include <utility>

#include "core/graph/topology.h"
#include "core/graph/typed_dataset.h"
#include "node/tables.h"
#include "train/input/typed_rows.h"
#include "train/tasks/node_targets.h"

namespace gnnd::node {

// What a Trainer over several types of nodes reads, opened.
struct TypedInputFiles {
  TypedDataset dataset;
  Topology topology;

  static Result<TypedInputFiles> Open(const DatasetLocation& at, int topology_fd) {
    TypedInputFiles files;
    files.dataset = GNND_VALUE(TypedDataset::Open(at.folder, at.schema, at.type_rows));
    files.topology = GNND_VALUE(Topology::Attach(topology_fd, files.dataset));
    return files;
  }

  // Options with the graph, its rows, and what is known of the nodes to learn; the rest is open.
  // Borrows these files.
  TypedOptions Options() const {
    TypedOptions typed;
    typed.graph = topology.graph();
    for (uint32_t type = 0; type < dataset.num_types(); ++type) {
      typed.rows.push_back(dataset.rows(type));
    }
    typed.own.features = typed.rows[0];
    NodeTargets& targets = typed.own.targets;
    targets.task = dataset.schema().types[0].task;
    targets.width = dataset.num_classes();
    targets.labels = dataset.labels();
    targets.label_bits = dataset.label_bits();
    targets.values = dataset.targets();
    return typed;
  }
};

}  // namespace gnnd::node
