#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/table/edge_sorter.h"
#include "core/table/edge_text.h"
#include "core/table/text_ids.h"
#include "core/table/text_rows.h"
#include "node/core/bindings.h"

// Tables of text that an import reads.

namespace gnnd::node {

template <>
inline constexpr auto kNames<ColumnKind> =
    NamesOf<ColumnKind>("ColumnKind", {{"SKIP", ColumnKind::kSkip},
                                       {"TEXT", ColumnKind::kText},
                                       {"NUMBER", ColumnKind::kNumber},
                                       {"WEIGHT", ColumnKind::kWeight},
                                       {"WHOLE", ColumnKind::kWhole},
                                       {"ID", ColumnKind::kId},
                                       {"CODE", ColumnKind::kCode}});

template <>
inline constexpr auto kTable<TextRowsOptions> =
    StructOf("TextRowsOptions", Field{"separator", &TextRowsOptions::separator, "One character."},
             Field{"header", &TextRowsOptions::header, "The first row is no data."},
             Field{"decimalCommas", &TextRowsOptions::decimal_commas},
             Field{"columns", &TextRowsOptions::columns});

// Numbers of a batch, which are copied once, to JavaScript.
template <typename T>
struct ViewOf {
  std::span<const T> values;
};

template <>
struct Codec<ViewOf<uint32_t>> {
  static std::string Type() { return "Uint32Array"; }
  static Napi::Value Write(Napi::Env env, const ViewOf<uint32_t>& view) {
    Napi::Uint32Array array = Napi::Uint32Array::New(env, view.values.size());
    std::copy(view.values.begin(), view.values.end(), array.Data());
    return array;
  }
};

template <>
struct Codec<ViewOf<float>> {
  static std::string Type() { return "Float32Array"; }
  static Napi::Value Write(Napi::Env env, const ViewOf<float>& view) {
    Napi::Float32Array array = Napi::Float32Array::New(env, view.values.size());
    std::copy(view.values.begin(), view.values.end(), array.Data());
    return array;
  }
};

template <auto kMember>
constexpr auto View = [](const TextBatch& batch) {
  using Value = typename std::remove_cvref_t<decltype(batch.*kMember)>::value_type;
  return ViewOf<Value>{batch.*kMember};
};

template <>
inline constexpr auto kTable<TextBatch> = StructOf(
    "TextBatch", "Several columns of one kind stand row after row, in their order.",
    Field{"numRows", &TextBatch::num_rows},
    Field{"header", &TextBatch::header, "Once, as it stands."},
    Field{"firstLine", &TextBatch::first_line, "Where the first row begins, from 1."},
    Field{"lines", View<&TextBatch::lines>, "Where each row begins, from the first line."},
    Field{"lastLine", &TextBatch::last_line, "Where the last row begins, from 1."},
    Field{"taken", &TextBatch::taken, "The rows were added to a sorter, and are not here."},
    Field{"wholes", View<&TextBatch::wholes>, "Of WHOLE, ID and CODE."},
    Field{"numbers", View<&TextBatch::numbers>},
    Field{"texts", &TextBatch::texts, "One a column of texts: those of all rows, by line feeds."},
    Field{"odd", View<&TextBatch::odd>,
          "Rows that are not plain: their numbers are 0, and their texts empty."},
    Field{"oddRows", &TextBatch::odd_rows, "As they stand."},
    Field{"broken", &TextBatch::broken,
          "The text is not UTF-8, has a record without an end, an id that is none, or more texts "
          "than a column of codes may: the columns are worth nothing."},
    Field{
        "coded", &TextBatch::coded,
        "One a column of codes: its texts that have a number since this batch, a line feed behind "
        "each."});

// A piece of a file.
struct Bytes {
  std::string values;
};

template <>
struct Codec<Bytes> {
  static std::string Type() { return "Uint8Array"; }
  static Bytes Read(const Napi::Value& value, const std::string& path) {
    if (!value.IsTypedArray() ||
        value.As<Napi::TypedArray>().TypedArrayType() != napi_uint8_array) {
      Refuse(value.Env(), path, "a Uint8Array");
    }
    const auto array = value.As<Napi::Uint8Array>();
    return {{reinterpret_cast<const char*>(array.Data()), array.ElementLength()}};
  }
  static Napi::Value Write(Napi::Env env, const Bytes& bytes) {
    Napi::Uint8Array array = Napi::Uint8Array::New(env, bytes.values.size());
    std::copy(bytes.values.begin(), bytes.values.end(), array.Data());
    return array;
  }
};

template <>
inline constexpr auto kTable<EdgeSorterOptions> =
    StructOf("EdgeSorterOptions", Field{"numNodes", &EdgeSorterOptions::num_nodes},
             Field{"weighted", &EdgeSorterOptions::weighted},
             Field{"once", &EdgeSorterOptions::once,
                   "Rows ascend, each column once, without self-loops; else they are as listed."},
             Field{"bothWays", &EdgeSorterOptions::both_ways,
                   "An edge stands in the row of its source, too."},
             Field{"folder", &EdgeSorterOptions::folder, "For what does not fit into memory."},
             Field{"entriesMax", &EdgeSorterOptions::entries_max,
                   "Held until they become a run, and given out at once."},
             Field{"memoryBytesMax", &EdgeSorterOptions::memory_bytes_max,
                   "Of runs, beyond which they go to the disk."},
             Field{"numSources", &EdgeSorterOptions::num_sources,
                   "Sources have ids of their own, below this; 0: they are nodes of the rows."});

template <>
inline constexpr auto kTable<EdgeConflict> =
    StructOf("EdgeConflict", "Edges that were added twice with unequal weights, by their lines.",
             Field{"line", &EdgeConflict::line}, Field{"earlier", &EdgeConflict::earlier});

template <>
inline constexpr auto kTable<EdgeCounts> = StructOf(
    "EdgeCounts", Field{"selfLoops", &EdgeCounts::self_loops, "That were left out."},
    Field{"entries", &EdgeCounts::entries, "Of all rows given out so far."},
    Field{"repeated", &EdgeCounts::repeated, "Entries that were left out because they were there."},
    Field{"conflictCount", &EdgeCounts::num_conflicts},
    Field{"conflicts", &EdgeCounts::conflicts, "The first ones."});

template <>
struct Codec<ViewOf<int64_t>> {
  static std::string Type() { return "BigInt64Array"; }
  static Napi::Value Write(Napi::Env env, const ViewOf<int64_t>& view) {
    Napi::BigInt64Array array = Napi::BigInt64Array::New(env, view.values.size());
    std::copy(view.values.begin(), view.values.end(), array.Data());
    return array;
  }
};

template <>
inline constexpr auto kTable<EdgeForm> =
    StructOf("EdgeForm", Field{"targetFirst", &EdgeForm::target_first},
             Field{"linesBefore", &EdgeForm::lines_before, "Of parts that were read before."},
             Field{"entriesMax", &EdgeForm::entries_max, "Held, until they become a run."});

template <auto kMember>
constexpr auto RowsView = [](const EdgeRows& rows) {
  using Value = typename std::remove_cvref_t<decltype(rows.*kMember)>::value_type;
  return ViewOf<Value>{rows.*kMember};
};

template <>
inline constexpr auto kTable<EdgeRows> = StructOf(
    "EdgeRows", "Rows that follow each other.",
    Field{"ends", RowsView<&EdgeRows::ends>, "Where each ends, counted over all rows before."},
    Field{"indices", RowsView<&EdgeRows::indices>},
    Field{"weights", RowsView<&EdgeRows::weights>, "Empty where edges have none."});

// Numbers that stay JavaScript's, for the time of the call.
template <typename T>
struct Lent {
  std::span<const T> values;
};

template <typename T, napi_typedarray_type kType>
struct LentCodec {
  static Lent<T> Read(const Napi::Value& value, const std::string& path) {
    if (!value.IsTypedArray() || value.As<Napi::TypedArray>().TypedArrayType() != kType) {
      Refuse(value.Env(), path, Codec<Lent<T>>::Type());
    }
    const auto array = value.As<Napi::TypedArrayOf<T>>();
    return {{array.Data(), array.ElementLength()}};
  }
};

template <>
struct Codec<Lent<uint32_t>> : LentCodec<uint32_t, napi_uint32_array> {
  static std::string Type() { return "Uint32Array"; }
};

template <>
struct Codec<Lent<float>> : LentCodec<float, napi_float32_array> {
  static std::string Type() { return "Float32Array"; }
};

// Objects are shared, so that what a thread works on outlives the handle.
using SharedRows = std::shared_ptr<TextRows>;
using SharedSorter = std::shared_ptr<EdgeSorter>;
using SharedIds = std::shared_ptr<TextIds>;

constexpr napi_type_tag kTextRowsTag = {0x676E6E64'74657874ULL, 0x5F726F77'735F6F66ULL};
constexpr napi_type_tag kTextIdsTag = {0x676E6E64'74657874ULL, 0x5F696473'5F616C6CULL};
constexpr napi_type_tag kEdgeSorterTag = {0x676E6E64'65646765ULL, 0x5F736F72'7465725FULL};

template <typename Shared, const napi_type_tag& kTag>
struct SharedCodec {
  static Shared Read(const Napi::Value& value, const std::string& path) {
    const bool is_one =
        value.IsExternal() && value.As<Napi::External<Shared>>().CheckTypeTag(&kTag);
    if (!is_one) Refuse(value.Env(), path, "a " + Codec<Shared>::Type());
    return *value.As<Napi::External<Shared>>().Data();
  }
  static Napi::Value Write(Napi::Env env, const Shared& shared) {
    auto handle = Napi::External<Shared>::New(env, new Shared(shared),
                                              [](Napi::Env, Shared* owned) { delete owned; });
    handle.TypeTag(&kTag);
    return handle;
  }
};

template <>
struct Codec<SharedRows> : SharedCodec<SharedRows, kTextRowsTag> {
  static std::string Type() { return "TextRowsHandle"; }
};

template <>
struct Codec<SharedIds> : SharedCodec<SharedIds, kTextIdsTag> {
  static std::string Type() { return "TextIdsHandle"; }
};

template <>
struct Codec<SharedSorter> : SharedCodec<SharedSorter, kEdgeSorterTag> {
  static std::string Type() { return "EdgeSorterHandle"; }
};

namespace {

SharedRows OpenRows(const TextRowsOptions& options, const std::optional<SharedIds>& ids) {
  return std::make_shared<TextRows>(options, ids ? *ids : nullptr);
}

Task<TextBatch> ReadRows(const SharedRows& rows, const Bytes& bytes, bool is_last) {
  return {
      [rows, bytes, is_last]() -> Result<TextBatch> { return rows->Read(bytes.values, is_last); }};
}

SharedIds OpenIds() { return std::make_shared<TextIds>(); }

bool AddText(const SharedIds& ids, const std::string& text) { return ids->Add(text).has_value(); }

uint64_t AddTexts(const SharedIds& ids, const std::string& texts) { return ids->AddLines(texts); }

std::optional<uint32_t> FindText(const SharedIds& ids, const std::string& text) {
  return ids->Find(text);
}

std::string TextAt(const SharedIds& ids, uint32_t number) { return std::string(ids->At(number)); }

// A piece of the lines of all texts.
std::optional<Bytes> TextLines(const SharedIds& ids, uint64_t piece) {
  if (piece >= ids->num_pieces()) return std::nullopt;
  return Bytes{std::string(ids->Piece(piece))};
}

SharedSorter OpenSorter(const EdgeSorterOptions& options) { return EdgeSorter::Open(options); }

std::optional<uint64_t> AddEdges(const SharedSorter& sorter, const Lent<uint32_t>& ends,
                                 const Lent<float>& weights, const Lent<uint32_t>& lines,
                                 uint64_t first_line) {
  const EdgeBlock block = {ends.values, weights.values, lines.values,
                           static_cast<uint32_t>(first_line)};
  if (!sorter->Add(block)) return std::nullopt;
  return sorter->NumHeld();
}

Task<void> SettleEdges(const SharedSorter& sorter) {
  return {[sorter] { return sorter->Settle(); }};
}

Task<std::optional<EdgeRows>> NextRows(const SharedSorter& sorter) {
  return {[sorter] { return sorter->Next(); }};
}

EdgeCounts CountsOf(const SharedSorter& sorter) { return sorter->counts(); }

Task<TextBatch> ReadEdges(const SharedRows& rows, const Bytes& bytes, bool is_last,
                          const SharedSorter& sorter, const EdgeForm& form) {
  return {[rows, bytes, is_last, sorter, form] {
    return ReadEdgeText(rows.get(), bytes.values, is_last, form, sorter.get());
  }};
}

// Cold, so that GCC 12 does not inline the sum of texts, in which it sees an overlap that is not
// there (its bug 105651).
[[gnu::noinline, gnu::cold]] void DefineKinds(Subject& subject) { subject.Enum<ColumnKind>(); }

}  // namespace

void DefineTable(Subject& subject) {
  DefineKinds(subject);
  subject.Struct<TextRowsOptions>()
      .Struct<TextBatch>()
      .Text(
          "/** Rows of a text under way; closed when nothing refers to it. */\n"
          "export type TextRowsHandle = { readonly textRows: unique symbol };\n")
      .Text(
          "/** Texts by their numbers; gone when nothing refers to them. */\n"
          "export type TextIdsHandle = { readonly textIds: unique symbol };\n")
      .Function("textRowsOpen", OpenRows, {"options", "ids"}, "Ids are those of columns of ID.")
      .Function("textRowsRead", ReadRows, {"rows", "bytes", "isLast"},
                "Rows that end in the next piece of the text; one call at a time.");
  subject.Function("textIdsOpen", OpenIds, {})
      .Function("textIdsAdd", AddText, {"ids", "text"}, "False where it was there before.")
      .Function("textIdsAddAll", AddTexts, {"ids", "texts"},
                "Adds texts, by line feeds, up to one that was there before or that is no id: how "
                "many.")
      .Function("textIdsFind", FindText, {"ids", "text"})
      .Function("textIdsAt", TextAt, {"ids", "number"}, "REQUIRES: there are so many.")
      .Function(
          "textIdsLines", TextLines, {"ids", "piece"},
          "All texts in their order, a line feed behind each: a piece, null behind the last.");
  subject.Struct<EdgeSorterOptions>()
      .Struct<EdgeConflict>()
      .Struct<EdgeCounts>()
      .Struct<EdgeRows>()
      .Struct<EdgeForm>()
      .Text(
          "/** Edges that become rows; what they hold is gone when nothing refers to them. */\n"
          "export type EdgeSorterHandle = { readonly edgeSorter: unique symbol };\n")
      .Function("edgeSorterOpen", OpenSorter, {"options"})
      .Function("edgeSorterAdd", AddEdges, {"sorter", "ends", "weights", "lines", "firstLine"},
                "Ends are source and target of each edge; lines count from the first line. Entries "
                "that are in no run yet; null, and nothing is added, where an end is no node.")
      .Function("edgeSorterRead", ReadEdges, {"rows", "bytes", "isLast", "sorter", "form"},
                "Adds the rows that end in the next piece of a text, two WHOLE or ID each and "
                "perhaps a WEIGHT, and settles; where not all of them are plain they come back as "
                "from textRowsRead. One call at a time.")
      .Function("edgeSorterSettle", SettleEdges, {"sorter"}, "What was added becomes a run.")
      .Function("edgeSorterNext", NextRows, {"sorter"},
                "The next rows, after the last edge; null after the last row.")
      .Function("edgeSorterCounts", CountsOf, {"sorter"});
}

}  // namespace gnnd::node
