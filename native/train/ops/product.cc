#include "train/ops/product.h"

#include <cblas.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/vec/convert.h"

#if defined(_OPENMP)
#include <omp.h>
#endif
#if defined(GNND_ONEDNN)
#include <oneapi/dnnl/dnnl.hpp>
#endif

namespace gnnd {
namespace {

#if defined(GNND_ONEDNN)

using dnnl::matmul;
using dnnl::memory;
using Tag = memory::format_tag;
using Type = memory::data_type;

template <typename T>
constexpr Type kType = std::is_same_v<T, float> ? Type::f32 : Type::bf16;

const dnnl::engine& Engine() {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

dnnl::stream& Stream() {
  thread_local dnnl::stream stream(Engine());
  return stream;
}

// Kernels are made for one thread and run on it, because our loops share the rows out. oneDNN's
// AVX2 products read the number of threads when they run, and split their sums by it, so it would
// decide bits.
class OneThread {
 public:
#if defined(_OPENMP)
  OneThread() : before_(omp_get_max_threads()) { omp_set_num_threads(1); }
  ~OneThread() { omp_set_num_threads(before_); }

 private:
  int before_;
#endif
};

// A product of matrices of fixed shapes, and its variant that adds to the output.
class OneDnnProduct {
 public:
  // None if oneDNN has only its reference code for this processor, or none at all.
  static std::optional<OneDnnProduct> Of(const memory::desc& a, const memory::desc& b,
                                         const memory::desc& out) {
    const OneThread one;
    try {
      const matmul::primitive_desc fresh(Engine(), a, b, out);
      dnnl::post_ops sum;
      sum.append_sum(1.0F);
      dnnl::primitive_attr attributes;
      attributes.set_post_ops(sum);
      const matmul::primitive_desc added(Engine(), a, fresh.weights_desc(), out, attributes);
      const auto is_fast = [](const matmul::primitive_desc& made) {
        const std::string name = made.impl_info_str();
        return name.starts_with("brg") || name.starts_with("gemm:jit");
      };
      if (!is_fast(fresh) || !is_fast(added)) return std::nullopt;
      return OneDnnProduct(fresh, added);
    } catch (const dnnl::error&) {
      return std::nullopt;
    }
  }

  const memory::desc& right() const { return right_; }

  void Run(const void* a, const void* b, bool add, float* out) {
    const OneThread one;
    a_.set_data_handle(const_cast<void*>(a));
    b_.set_data_handle(const_cast<void*>(b));
    out_.set_data_handle(out);
    (add ? added_ : fresh_)
        .execute(Stream(), {{DNNL_ARG_SRC, a_}, {DNNL_ARG_WEIGHTS, b_}, {DNNL_ARG_DST, out_}});
  }

 private:
  OneDnnProduct(const matmul::primitive_desc& fresh, const matmul::primitive_desc& added)
      : right_(fresh.weights_desc()),
        fresh_(fresh),
        added_(added),
        a_(fresh.src_desc(), Engine(), DNNL_MEMORY_NONE),
        b_(right_, Engine(), DNNL_MEMORY_NONE),
        out_(fresh.dst_desc(), Engine(), DNNL_MEMORY_NONE) {}

  memory::desc right_;
  matmul fresh_;
  matmul added_;
  memory a_;
  memory b_;
  memory out_;
};

memory::dim Dim(uint64_t size) { return static_cast<memory::dim>(size); }

template <typename T>
class OneDnnRowProduct final : public RowProduct<T> {
 public:
  static std::unique_ptr<RowProduct<T>> Of(uint64_t in, uint64_t out, uint32_t rows) {
    const auto product_of = [&](uint32_t height, const memory::desc& right) {
      return OneDnnProduct::Of({{Dim(height), Dim(in)}, kType<T>, Tag::ab}, right,
                               {{Dim(height), Dim(out)}, Type::f32, Tag::ab});
    };
    // The tallest product decides the weights' form for all.
    auto product = product_of(kProductRows, {{Dim(in), Dim(out)}, kType<T>, Tag::any});
    if (product && rows != kProductRows) product = product_of(rows, product->right());
    if (!product) return nullptr;
    return std::unique_ptr<RowProduct<T>>(new OneDnnRowProduct(in, out, std::move(*product)));
  }

  uint64_t packed_bytes() const override { return product_.right().get_size(); }
  uint32_t rows_step() const override { return 32; }

  void Pack(const float* weight, bool out_by_in, void* packed) override {
    const OneThread one;
    const memory::desc given({Dim(in_), Dim(out_)}, Type::f32, out_by_in ? Tag::ba : Tag::ab);
    memory from(given, Engine(), const_cast<float*>(weight));
    memory to(product_.right(), Engine(), packed);
    dnnl::reorder(from, to).execute(Stream(), from, to);
  }

  void Run(const T* x, const void* packed, bool add, float* sums) override {
    product_.Run(x, packed, add, sums);
  }

 private:
  OneDnnRowProduct(uint64_t in, uint64_t out, OneDnnProduct product)
      : in_(in), out_(out), product_(std::move(product)) {}

  uint64_t in_;
  uint64_t out_;
  OneDnnProduct product_;
};

template <typename T>
class OneDnnTransposedProduct final : public TransposedProduct<T> {
 public:
  static std::unique_ptr<TransposedProduct<T>> Of(const TransposedShape& shape) {
    const memory::dim height = Dim(shape.height);
    const memory::dim width = Dim(shape.width);
    const memory::dim rows = Dim(shape.rows);
    auto product = OneDnnProduct::Of({{height, rows}, kType<T>, memory::dims{1, Dim(shape.stride)}},
                                     {{rows, width}, kType<T>, Tag::ab},
                                     {{height, width}, Type::f32, Tag::ab});
    if (!product) return nullptr;
    return std::unique_ptr<TransposedProduct<T>>(new OneDnnTransposedProduct(std::move(*product)));
  }

  void Run(const T* a, const T* b, bool add, float* out) override { product_.Run(a, b, add, out); }

 private:
  explicit OneDnnTransposedProduct(OneDnnProduct product) : product_(std::move(product)) {}

  OneDnnProduct product_;
};

#endif  // GNND_ONEDNN

blasint Int(uint64_t size) { return static_cast<blasint>(size); }

// OpenBLAS's own threads would compete with ours.
void UseOneBlasThread() {
  [[maybe_unused]] static const bool once = [] {
    scipy_openblas_set_num_threads(1);
    return true;
  }();
}

// `rows` rows of `columns`, `stride` apart, as float: in place, or a packed copy.
struct FloatRows {
  const float* data;
  uint64_t stride;
};
FloatRows AsFloat(const float* from, uint64_t, uint64_t, uint64_t stride, std::vector<float>*) {
  return {from, stride};
}
FloatRows AsFloat(const Bfloat16* from, uint64_t rows, uint64_t columns, uint64_t stride,
                  std::vector<float>* to) {
  to->resize(rows * columns);
  for (uint64_t r = 0; r < rows; ++r) {
    Convert(from + r * stride, columns, to->data() + r * columns);
  }
  return {to->data(), columns};
}

template <typename T>
class BlasRowProduct final : public RowProduct<T> {
 public:
  BlasRowProduct(uint64_t in, uint64_t out, uint32_t rows) : in_(in), out_(out), rows_(rows) {
    UseOneBlasThread();
  }

  uint64_t packed_bytes() const override { return in_ * out_ * sizeof(float); }
  uint32_t rows_step() const override { return kProductRows; }

  // Packs the weights as [in, out].
  void Pack(const float* weight, bool out_by_in, void* packed) override {
    auto* to = static_cast<float*>(packed);
    for (uint64_t i = 0; i < in_; ++i) {
      for (uint64_t o = 0; o < out_; ++o) {
        const float value = out_by_in ? weight[o * in_ + i] : weight[i * out_ + o];
        to[i * out_ + o] = std::is_same_v<T, float> ? value : ToFloat(ToBfloat16(value));
      }
    }
  }

  void Run(const T* x, const void* packed, bool add, float* sums) override {
    const FloatRows rows = AsFloat(x, rows_, in_, in_, &wide_);
    scipy_cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, Int(rows_), Int(out_), Int(in_),
                      1.0F, rows.data, Int(rows.stride), static_cast<const float*>(packed),
                      Int(out_), add ? 1.0F : 0.0F, sums, Int(out_));
  }

 private:
  uint64_t in_;
  uint64_t out_;
  uint32_t rows_;
  std::vector<float> wide_;
};

template <typename T>
class BlasTransposedProduct final : public TransposedProduct<T> {
 public:
  explicit BlasTransposedProduct(const TransposedShape& shape) : shape_(shape) {
    UseOneBlasThread();
  }

  void Run(const T* a, const T* b, bool add, float* out) override {
    const auto& [rows, height, width, stride] = shape_;
    const FloatRows left = AsFloat(a, rows, height, stride, &left_);
    const FloatRows right = AsFloat(b, rows, width, width, &right_);
    scipy_cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, Int(height), Int(width), Int(rows),
                      1.0F, left.data, Int(left.stride), right.data, Int(right.stride),
                      add ? 1.0F : 0.0F, out, Int(width));
  }

 private:
  TransposedShape shape_;
  std::vector<float> left_;
  std::vector<float> right_;
};

}  // namespace

MatrixLibrary ChosenMatrixLibrary() {
  static const MatrixLibrary chosen = [] {
    const char* name = std::getenv("GNND_MATRIX_LIBRARY");
#if defined(GNND_ONEDNN)
    if (name == nullptr || std::string_view(name) != "OPENBLAS") return MatrixLibrary::kOneDnn;
#else
    static_cast<void>(name);
#endif
    return MatrixLibrary::kOpenBlas;
  }();
  return chosen;
}

template <typename T>
std::unique_ptr<RowProduct<T>> MakeRowProduct(MatrixLibrary library, uint64_t in, uint64_t out,
                                              uint32_t rows) {
  if (library == MatrixLibrary::kOpenBlas) {
    return std::make_unique<BlasRowProduct<T>>(in, out, rows);
  }
#if defined(GNND_ONEDNN)
  return OneDnnRowProduct<T>::Of(in, out, rows);
#else
  return nullptr;
#endif
}

template <typename T>
RowProduct<T>& RowProductOf(uint64_t in, uint64_t out, uint32_t rows) {
  thread_local std::map<std::tuple<uint64_t, uint64_t, uint32_t>, std::unique_ptr<RowProduct<T>>>
      made;
  std::unique_ptr<RowProduct<T>>& product = made[{in, out, rows}];
  if (product == nullptr) product = MakeRowProduct<T>(ChosenMatrixLibrary(), in, out, rows);
  if (product == nullptr) product = MakeRowProduct<T>(MatrixLibrary::kOpenBlas, in, out, rows);
  return *product;
}

template <typename T>
std::unique_ptr<TransposedProduct<T>> MakeTransposedProduct(MatrixLibrary library,
                                                            const TransposedShape& shape) {
  if (library == MatrixLibrary::kOpenBlas) return std::make_unique<BlasTransposedProduct<T>>(shape);
#if defined(GNND_ONEDNN)
  return OneDnnTransposedProduct<T>::Of(shape);
#else
  return nullptr;
#endif
}

template <typename T>
TransposedProduct<T>& TransposedProductOf(const TransposedShape& shape) {
  thread_local std::map<TransposedShape, std::unique_ptr<TransposedProduct<T>>> made;
  std::unique_ptr<TransposedProduct<T>>& product = made[shape];
  if (product == nullptr) product = MakeTransposedProduct<T>(ChosenMatrixLibrary(), shape);
  if (product == nullptr) product = MakeTransposedProduct<T>(MatrixLibrary::kOpenBlas, shape);
  return *product;
}

#define GNND_PRODUCTS_OF(T)                                                                     \
  template std::unique_ptr<RowProduct<T>> MakeRowProduct(MatrixLibrary, uint64_t, uint64_t,     \
                                                         uint32_t);                             \
  template RowProduct<T>& RowProductOf(uint64_t, uint64_t, uint32_t);                           \
  template std::unique_ptr<TransposedProduct<T>> MakeTransposedProduct(MatrixLibrary,           \
                                                                       const TransposedShape&); \
  template TransposedProduct<T>& TransposedProductOf(const TransposedShape&)
GNND_PRODUCTS_OF(float);
GNND_PRODUCTS_OF(Bfloat16);
#undef GNND_PRODUCTS_OF

}  // namespace gnnd
