#pragma once

#include <cstdint>
#include <filesystem>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "core/graph/schema.h"
#include "test/support/npy_files.h"
#include "test/support/typed_graphs.h"

// Small datasets of several types, as folders.

namespace gnnd::test {

// "t0", "t1" ...
inline std::string Numbered(char letter, size_t number) {
  std::string name(1, letter);
  name += std::to_string(number);
  return name;
}

// A dataset as values: changed by a test, then written. Types are t0, t1 ..., relations r0, r1 ...
struct TypedFiles {
  TypedGraph graph;
  std::vector<uint64_t> widths;  // of each type's features; 0: it has none
  std::vector<int32_t> labels;   // of type 0; empty: it has neither labels nor splits
  std::vector<int64_t> train;
  std::vector<int64_t> val;
  std::vector<int64_t> test;

  // With features of all types but the last, where there are several, and a third of type 0's nodes
  // to train on.
  static TypedFiles Of(TypedGraph graph) {
    TypedFiles files{std::move(graph), {}, {}, {}, {}, {}};
    const size_t types = files.graph.num_nodes.size();
    for (size_t t = 0; t < types; ++t) files.widths.push_back(t > 0 && t + 1 == types ? 0 : 3 + t);
    for (uint32_t v = 0; v < files.graph.num_nodes[0]; ++v) {
      files.labels.push_back(static_cast<int32_t>(v % 4));
      (v % 3 == 0 ? files.train : v % 3 == 1 ? files.val : files.test).push_back(v);
    }
    return files;
  }

  Schema schema() const {
    Schema schema;
    for (size_t t = 0; t < graph.num_nodes.size(); ++t) {
      NodeType type;
      type.name = Numbered('t', t);
      type.num_nodes = graph.num_nodes[t];
      type.num_features = widths[t];
      if (t == 0 && !labels.empty()) {
        type.labelled = true;
        type.num_classes = 4;
        type.train = train.size();
        type.val = val.size();
        type.test = test.size();
      }
      schema.types.push_back(type);
    }
    for (size_t r = 0; r < graph.relations.size(); ++r) {
      const TypedGraph::Relation& relation = graph.relations[r];
      schema.relations.push_back(
          {relation.src_type, Numbered('r', r), relation.dst_type, relation.rows.indices.size()});
    }
    return schema;
  }

  // The features of a type: row v column c is a number of its own.
  std::vector<float> FeaturesOf(size_t type) const {
    std::vector<float> features(graph.num_nodes[type] * widths[type]);
    std::iota(features.begin(), features.end(), 1000.0F * static_cast<float>(type));
    return features;
  }

  void WriteTo(const TempFolder& folder) const {
    const Schema names = schema();
    for (size_t t = 0; t < names.types.size(); ++t) {
      const std::string in = folder / FolderOf(names.types[t]);
      std::filesystem::create_directories(in);
      if (widths[t] > 0) {
        WriteNpy(in + "features.npy", FeaturesOf(t), {graph.num_nodes[t], widths[t]});
      }
      if (!names.types[t].labelled) continue;
      WriteNpy(in + "labels.npy", labels);
      WriteNpy(in + "train.npy", train);
      WriteNpy(in + "val.npy", val);
      WriteNpy(in + "test.npy", test);
    }
    for (size_t r = 0; r < names.relations.size(); ++r) {
      const std::string in = folder / FolderOf(names, names.relations[r]);
      std::filesystem::create_directories(in);
      const Graph& rows = graph.relations[r].rows;
      WriteNpy<int64_t>(in + "indptr.npy", {rows.indptr.begin(), rows.indptr.end()});
      WriteNpy<int32_t>(in + "indices.npy", {rows.indices.begin(), rows.indices.end()});
    }
  }
};

}  // namespace gnnd::test
