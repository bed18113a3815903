#include "train/narrow_product.h"

#include <cblas.h>

#include <cstring>
#include <map>
#include <optional>
#include <string>
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

const dnnl::engine& Engine() {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

dnnl::stream& Stream() {
  thread_local dnnl::stream stream(Engine());
  return stream;
}

// Kernels are made for one thread: ours share the rows out.
class OneThread {
 public:
#if defined(_OPENMP)
  OneThread() : before_(omp_get_max_threads()) { omp_set_num_threads(1); }
  ~OneThread() { omp_set_num_threads(before_); }

 private:
  int before_;
#endif
};

// A product of matrices of fixed shapes, and the same added to what is there.
class OneDnnProduct {
 public:
  // None where oneDNN has only its reference for this processor, or nothing.
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
        return std::string(made.impl_info_str()).starts_with("brg");
      };
      if (!is_fast(fresh) || !is_fast(added)) return std::nullopt;
      return OneDnnProduct(fresh, added);
    } catch (const dnnl::error&) {
      return std::nullopt;
    }
  }

  const memory::desc& right() const { return right_; }

  void Run(const Bfloat16* a, const void* b, bool add, float* out) {
    a_.set_data_handle(const_cast<Bfloat16*>(a));
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

class OneDnnRowProduct final : public RowProduct {
 public:
  static std::unique_ptr<RowProduct> Of(uint64_t in, uint64_t out) {
    auto product = OneDnnProduct::Of({{kProductRows, Dim(in)}, Type::bf16, Tag::ab},
                                     {{Dim(in), Dim(out)}, Type::bf16, Tag::any},
                                     {{kProductRows, Dim(out)}, Type::f32, Tag::ab});
    if (!product) return nullptr;
    return std::unique_ptr<RowProduct>(new OneDnnRowProduct(in, out, std::move(*product)));
  }

  uint64_t packed_bytes() const override { return product_.right().get_size(); }

  void Pack(const float* weight, bool out_by_in, void* packed) override {
    const OneThread one;
    const memory::desc given({Dim(in_), Dim(out_)}, Type::f32, out_by_in ? Tag::ba : Tag::ab);
    memory from(given, Engine(), const_cast<float*>(weight));
    memory to(product_.right(), Engine(), packed);
    dnnl::reorder(from, to).execute(Stream(), from, to);
  }

  void Run(const Bfloat16* x, const void* packed, bool add, float* sums) override {
    product_.Run(x, packed, add, sums);
  }

 private:
  OneDnnRowProduct(uint64_t in, uint64_t out, OneDnnProduct product)
      : in_(in), out_(out), product_(std::move(product)) {}

  uint64_t in_;
  uint64_t out_;
  OneDnnProduct product_;
};

class OneDnnTransposedProduct final : public TransposedProduct {
 public:
  static std::unique_ptr<TransposedProduct> Of(uint64_t height, uint64_t width) {
    auto product = OneDnnProduct::Of({{Dim(height), kTransposedRows}, Type::bf16, Tag::ba},
                                     {{kTransposedRows, Dim(width)}, Type::bf16, Tag::ab},
                                     {{Dim(height), Dim(width)}, Type::f32, Tag::ab});
    if (!product) return nullptr;
    return std::unique_ptr<TransposedProduct>(new OneDnnTransposedProduct(std::move(*product)));
  }

  void Run(const Bfloat16* a, const Bfloat16* b, bool add, float* out) override {
    product_.Run(a, b, add, out);
  }

 private:
  explicit OneDnnTransposedProduct(OneDnnProduct product) : product_(std::move(product)) {}

  OneDnnProduct product_;
};

#endif  // GNND_ONEDNN

const float* Widened(const Bfloat16* from, uint64_t count, std::vector<float>* to) {
  to->resize(count);
  Convert(from, count, to->data());
  return to->data();
}

blasint Int(uint64_t size) { return static_cast<blasint>(size); }

class WidenedRowProduct final : public RowProduct {
 public:
  WidenedRowProduct(uint64_t in, uint64_t out) : in_(in), out_(out) {}

  uint64_t packed_bytes() const override { return in_ * out_ * sizeof(float); }

  // As [in, out], each rounded to bfloat16.
  void Pack(const float* weight, bool out_by_in, void* packed) override {
    auto* to = static_cast<float*>(packed);
    for (uint64_t i = 0; i < in_; ++i) {
      for (uint64_t o = 0; o < out_; ++o) {
        to[i * out_ + o] =
            ToFloat(ToBfloat16(out_by_in ? weight[o * in_ + i] : weight[i * out_ + o]));
      }
    }
  }

  void Run(const Bfloat16* x, const void* packed, bool add, float* sums) override {
    const float* rows = Widened(x, kProductRows * in_, &rows_);
    scipy_cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, kProductRows, Int(out_), Int(in_),
                      1.0F, rows, Int(in_), static_cast<const float*>(packed), Int(out_),
                      add ? 1.0F : 0.0F, sums, Int(out_));
  }

 private:
  uint64_t in_;
  uint64_t out_;
  std::vector<float> rows_;
};

class WidenedTransposedProduct final : public TransposedProduct {
 public:
  WidenedTransposedProduct(uint64_t height, uint64_t width) : height_(height), width_(width) {}

  void Run(const Bfloat16* a, const Bfloat16* b, bool add, float* out) override {
    const float* left = Widened(a, kTransposedRows * height_, &left_);
    const float* right = Widened(b, kTransposedRows * width_, &right_);
    scipy_cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, Int(height_), Int(width_),
                      kTransposedRows, 1.0F, left, Int(height_), right, Int(width_),
                      add ? 1.0F : 0.0F, out, Int(width_));
  }

 private:
  uint64_t height_;
  uint64_t width_;
  std::vector<float> left_;
  std::vector<float> right_;
};

// By two sizes.
template <typename Product>
using Made = std::map<std::pair<uint64_t, uint64_t>, std::unique_ptr<Product>>;

}  // namespace

RowProduct& RowProductOf(uint64_t in, uint64_t out) {
  thread_local Made<RowProduct> made;
  std::unique_ptr<RowProduct>& product = made[{in, out}];
#if defined(GNND_ONEDNN)
  if (product == nullptr) product = OneDnnRowProduct::Of(in, out);
#endif
  if (product == nullptr) product = WidenedRowProductOf(in, out);
  return *product;
}

std::unique_ptr<RowProduct> WidenedRowProductOf(uint64_t in, uint64_t out) {
  return std::make_unique<WidenedRowProduct>(in, out);
}

TransposedProduct& TransposedProductOf(uint64_t height, uint64_t width) {
  thread_local Made<TransposedProduct> made;
  std::unique_ptr<TransposedProduct>& product = made[{height, width}];
#if defined(GNND_ONEDNN)
  if (product == nullptr) product = OneDnnTransposedProduct::Of(height, width);
#endif
  if (product == nullptr) product = WidenedTransposedProductOf(height, width);
  return *product;
}

std::unique_ptr<TransposedProduct> WidenedTransposedProductOf(uint64_t height, uint64_t width) {
  return std::make_unique<WidenedTransposedProduct>(height, width);
}

}  // namespace gnnd
