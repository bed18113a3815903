#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <vector>

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
                                       {"WHOLE", ColumnKind::kWhole}});

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
    Field{"wholes", View<&TextBatch::wholes>}, Field{"numbers", View<&TextBatch::numbers>},
    Field{"texts", &TextBatch::texts, "One a column of texts: those of all rows, by line feeds."},
    Field{"odd", View<&TextBatch::odd>,
          "Rows that are not plain: their numbers are 0, and their texts empty."},
    Field{"oddRows", &TextBatch::odd_rows, "As they stand."},
    Field{"broken", &TextBatch::broken,
          "The text is not UTF-8, or has a record without an end: the columns are worth nothing."});

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
};

constexpr napi_type_tag kTextRowsTag = {0x676E6E64'74657874ULL, 0x5F726F77'735F6F66ULL};

// Shared, so that a piece that is read on its thread outlives the handle.
using SharedRows = std::shared_ptr<TextRows>;

template <>
struct Codec<SharedRows> {
  static std::string Type() { return "TextRowsHandle"; }
  static SharedRows Read(const Napi::Value& value, const std::string& path) {
    const bool is_rows =
        value.IsExternal() && value.As<Napi::External<SharedRows>>().CheckTypeTag(&kTextRowsTag);
    if (!is_rows) Refuse(value.Env(), path, "rows of a text");
    return *value.As<Napi::External<SharedRows>>().Data();
  }
  static Napi::Value Write(Napi::Env env, const SharedRows& rows) {
    auto handle = Napi::External<SharedRows>::New(
        env, new SharedRows(rows), [](Napi::Env, SharedRows* owned) { delete owned; });
    handle.TypeTag(&kTextRowsTag);
    return handle;
  }
};

namespace {

SharedRows OpenRows(const TextRowsOptions& options) { return std::make_shared<TextRows>(options); }

Task<TextBatch> ReadRows(const SharedRows& rows, const Bytes& bytes, bool is_last) {
  return {
      [rows, bytes, is_last]() -> Result<TextBatch> { return rows->Read(bytes.values, is_last); }};
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
      .Function("textRowsOpen", OpenRows, {"options"})
      .Function("textRowsRead", ReadRows, {"rows", "bytes", "isLast"},
                "Rows that end in the next piece of the text; one call at a time.");
}

}  // namespace gnnd::node
