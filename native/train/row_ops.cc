#include "train/row_ops.h"

#include <ATen/ops/empty_like.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/ones_like.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/draw/philox.h"
#include "train/grouped_sum.h"
#include "train/parallel.h"

namespace gnnd {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr double kBatchNormEpsilon = 1e-5;
constexpr uint32_t kGrainRows = 64;

void SaveWorkspace(AutogradContext* context, Workspace* workspace) {
  context->saved_data["workspace"] = reinterpret_cast<int64_t>(workspace);
}

Workspace* SavedWorkspace(AutogradContext* context) {
  return reinterpret_cast<Workspace*>(context->saved_data["workspace"].toInt());
}

uint32_t RowsOf(const at::Tensor& x) { return static_cast<uint32_t>(x.size(0)); }

// ---- batch normalisation ----------------------------------------------------------------------

template <typename T>
struct Columns {
  const T* mean;
  const T* inverse;  // 1 / standard deviation
  const T* scale;
  const T* shift;
};

template <typename T>
void NormalizeColumns(const T* x, uint32_t rows, uint64_t columns, const Columns<T>& by, T* out) {
  ParallelRows(rows, kGrainRows, [=](uint32_t begin, uint32_t end) {
    for (uint64_t r = begin; r < end; ++r) {
      for (uint64_t c = 0; c < columns; ++c) {
        const uint64_t at = r * columns + c;
        out[at] = (x[at] - by.mean[c]) * by.inverse[c] * by.scale[c] + by.shift[c];
      }
    }
  });
}

template <typename T>
void InvertDeviations(const T* variance, uint64_t columns, T* inverse) {
  for (uint64_t c = 0; c < columns; ++c) {
    inverse[c] = T{1} / std::sqrt(variance[c] + static_cast<T>(kBatchNormEpsilon));
  }
}

// [2, columns]: mean, then variance over all rows.
template <typename T>
void MomentsOf(const T* x, uint32_t rows, uint64_t columns, Workspace* workspace, T* moments) {
  const T count = static_cast<T>(rows);
  SumInGroups(rows, columns, workspace, moments, [=](uint32_t begin, uint32_t end, T* sums) {
    for (uint64_t r = begin; r < end; ++r) {
      for (uint64_t c = 0; c < columns; ++c) sums[c] += x[r * columns + c];
    }
  });
  for (uint64_t c = 0; c < columns; ++c) moments[c] /= count;
  T* const variance = moments + columns;
  SumInGroups(rows, columns, workspace, variance, [=](uint32_t begin, uint32_t end, T* sums) {
    for (uint64_t r = begin; r < end; ++r) {
      for (uint64_t c = 0; c < columns; ++c) {
        const T distance = x[r * columns + c] - moments[c];
        sums[c] += distance * distance;
      }
    }
  });
  for (uint64_t c = 0; c < columns; ++c) variance[c] /= count;
}

class BatchNormFunction : public torch::autograd::Function<BatchNormFunction> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& scale,
                            const at::Tensor& shift, const at::Tensor& moments,
                            Workspace* workspace) {
    SaveWorkspace(context, workspace);
    const auto columns = static_cast<uint64_t>(x.size(1));
    const at::Tensor inverse = EmptyIn(workspace, x, 0, x.size(1));
    at::Tensor out = EmptyIn(workspace, x, x.size(0), x.size(1));
    InTypeOf(x, [&]<typename T>(T) {
      T* const found = moments.data_ptr<T>();
      MomentsOf(x.const_data_ptr<T>(), RowsOf(x), columns, workspace, found);
      InvertDeviations(found + columns, columns, inverse.data_ptr<T>());
      const Columns<T> by{found, inverse.const_data_ptr<T>(), scale.const_data_ptr<T>(),
                          shift.const_data_ptr<T>()};
      NormalizeColumns(x.const_data_ptr<T>(), RowsOf(x), columns, by, out.data_ptr<T>());
    });
    context->save_for_backward({x, scale, moments, inverse});
    return out;
  }

  static variable_list backward(AutogradContext* context, variable_list grads) {
    Workspace* const workspace = SavedWorkspace(context);
    const variable_list saved = context->get_saved_variables();
    const at::Tensor& x = saved[0];
    const at::Tensor grad = grads[0].contiguous();
    const at::Tensor grad_in = EmptyIn(workspace, x, x.size(0), x.size(1));
    const at::Tensor sums = EmptyIn(workspace, x, 2, x.size(1));
    InTypeOf(x, [&]<typename T>(T) {
      Backward<T>(x, grad,
                  {saved[2].const_data_ptr<T>(), saved[3].const_data_ptr<T>(),
                   saved[1].const_data_ptr<T>(), nullptr},
                  workspace, sums.data_ptr<T>(), grad_in.data_ptr<T>());
    });
    return {grad_in, sums[0], sums[1], at::Tensor(), at::Tensor()};
  }

 private:
  // `sums` receives the gradients in scale and shift.
  template <typename T>
  static void Backward(const at::Tensor& x, const at::Tensor& grad, const Columns<T>& by,
                       Workspace* workspace, T* sums, T* grad_in) {
    const auto columns = static_cast<uint64_t>(x.size(1));
    const uint32_t rows = RowsOf(x);
    const T* const values = x.const_data_ptr<T>();
    const T* const from = grad.const_data_ptr<T>();
    SumInGroups(rows, 2 * columns, workspace, sums, [=](uint32_t begin, uint32_t end, T* partial) {
      for (uint64_t r = begin; r < end; ++r) {
        for (uint64_t c = 0; c < columns; ++c) {
          const uint64_t at = r * columns + c;
          partial[c] += from[at] * ((values[at] - by.mean[c]) * by.inverse[c]);
          partial[columns + c] += from[at];
        }
      }
    });
    const T count = static_cast<T>(rows);
    ParallelRows(rows, kGrainRows, [=](uint32_t begin, uint32_t end) {
      for (uint64_t r = begin; r < end; ++r) {
        for (uint64_t c = 0; c < columns; ++c) {
          const uint64_t at = r * columns + c;
          const T unit = (values[at] - by.mean[c]) * by.inverse[c];
          const T along = (sums[columns + c] + unit * sums[c]) / count;
          grad_in[at] = by.scale[c] * by.inverse[c] * (from[at] - along);
        }
      }
    });
  }
};

// ---- PReLU ------------------------------------------------------------------------------------

class PReluFunction : public torch::autograd::Function<PReluFunction> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& slope,
                            Workspace* workspace) {
    SaveWorkspace(context, workspace);
    context->save_for_backward({x, slope});
    const at::Tensor out = EmptyIn(workspace, x, x.size(0), x.size(1));
    const auto columns = static_cast<uint64_t>(x.size(1));
    InTypeOf(x, [&]<typename T>(T) {
      const T* const from = x.const_data_ptr<T>();
      const T below = slope.const_data_ptr<T>()[0];
      T* const to = out.data_ptr<T>();
      ParallelRows(RowsOf(x), kGrainRows, [=](uint32_t begin, uint32_t end) {
        for (uint64_t i = begin * columns; i < end * columns; ++i) {
          to[i] = from[i] > T{0} ? from[i] : below * from[i];
        }
      });
    });
    return out;
  }

  static variable_list backward(AutogradContext* context, variable_list grads) {
    Workspace* const workspace = SavedWorkspace(context);
    const variable_list saved = context->get_saved_variables();
    const at::Tensor& x = saved[0];
    const at::Tensor grad = grads[0].contiguous();
    const at::Tensor grad_in = EmptyIn(workspace, x, x.size(0), x.size(1));
    const at::Tensor grad_slope = EmptyIn(workspace, x, 0, 1);
    const auto columns = static_cast<uint64_t>(x.size(1));
    InTypeOf(x, [&]<typename T>(T) {
      const T* const from = x.const_data_ptr<T>();
      const T* const given = grad.const_data_ptr<T>();
      const T below = saved[1].const_data_ptr<T>()[0];
      T* const to = grad_in.data_ptr<T>();
      SumInGroups(RowsOf(x), 1, workspace, grad_slope.data_ptr<T>(),
                  [=](uint32_t begin, uint32_t end, T* sum) {
                    for (uint64_t i = begin * columns; i < end * columns; ++i) {
                      const bool positive = from[i] > T{0};
                      to[i] = positive ? given[i] : below * given[i];
                      if (!positive) *sum += given[i] * from[i];
                    }
                  });
    });
    return {grad_in, grad_slope, at::Tensor()};
  }
};

// ---- attention --------------------------------------------------------------------------------

struct AttentionShape {
  uint32_t rows;
  uint32_t queries;
  uint32_t tokens;
  uint32_t heads;
  uint32_t head_width;

  uint64_t width() const { return uint64_t{heads} * head_width; }
  // Of a row's probabilities, [heads, queries, tokens].
  uint64_t scores() const { return uint64_t{heads} * queries * tokens; }
};

// Probabilities' factors: 0 or 1 / (1 - p), element head * queries * tokens + ... of the node.
template <typename T>
void DrawMask(const DropoutSite& site, uint32_t node, uint64_t count, T* mask) {
  const DrawStream stream = DropoutStream(site.key, Purpose::kAttentionDropout);
  const uint64_t threshold = DropoutThreshold(site.p);
  const T scale = T{1} / (T{1} - static_cast<T>(site.p));
  PhiloxWords words{};
  for (uint64_t i = 0; i < count; ++i) {
    if (i % 4 == 0) words = LongRowWords(stream, node, i / 4);
    mask[i] = words.word[i % 4] >= threshold ? scale : T{0};
  }
}

// Of one row; `probability` receives softmax's, before dropout.
template <typename T>
void AttendRow(const AttentionShape& shape, const T* query, const T* key, const T* value,
               const T* mask, T* probability, T* out) {
  const T scale = T{1} / std::sqrt(static_cast<T>(shape.head_width));
  std::fill_n(out, shape.queries * shape.width(), T{0});
  for (uint32_t head = 0; head < shape.heads; ++head) {
    const uint64_t column = uint64_t{head} * shape.head_width;
    for (uint32_t q = 0; q < shape.queries; ++q) {
      const uint64_t at = (uint64_t{head} * shape.queries + q) * shape.tokens;
      T* const p = probability + at;
      T most = -std::numeric_limits<T>::infinity();
      for (uint32_t t = 0; t < shape.tokens; ++t) {
        p[t] = scale * DotOfRows(query + q * shape.width() + column,
                                 key + t * shape.width() + column, shape.head_width);
        most = std::max(most, p[t]);
      }
      T sum = 0;
      for (uint32_t t = 0; t < shape.tokens; ++t) sum += p[t] = std::exp(p[t] - most);
      T* const to = out + q * shape.width() + column;
      for (uint32_t t = 0; t < shape.tokens; ++t) {
        p[t] /= sum;
        const T factor = mask == nullptr ? p[t] : p[t] * mask[at + t];
        const T* const from = value + t * shape.width() + column;
        for (uint32_t c = 0; c < shape.head_width; ++c) to[c] += factor * from[c];
      }
    }
  }
}

template <typename T>
struct RowGradients {
  T* query;
  T* key;
  T* value;
};

template <typename T>
void AttendRowBackward(const AttentionShape& shape, const T* query, const T* key, const T* value,
                       const T* mask, const T* probability, const T* grad, T* along,
                       const RowGradients<T>& to) {
  const T scale = T{1} / std::sqrt(static_cast<T>(shape.head_width));
  std::fill_n(to.query, shape.queries * shape.width(), T{0});
  std::fill_n(to.key, shape.tokens * shape.width(), T{0});
  std::fill_n(to.value, shape.tokens * shape.width(), T{0});
  for (uint32_t head = 0; head < shape.heads; ++head) {
    const uint64_t column = uint64_t{head} * shape.head_width;
    for (uint32_t q = 0; q < shape.queries; ++q) {
      const uint64_t at = (uint64_t{head} * shape.queries + q) * shape.tokens;
      const uint64_t here = q * shape.width() + column;
      T mean = 0;
      for (uint32_t t = 0; t < shape.tokens; ++t) {
        const uint64_t there = t * shape.width() + column;
        const T kept = mask == nullptr ? T{1} : mask[at + t];
        along[t] = kept * DotOfRows(grad + here, value + there, shape.head_width);
        mean += along[t] * probability[at + t];
        const T factor = kept * probability[at + t];
        for (uint32_t c = 0; c < shape.head_width; ++c) {
          to.value[there + c] += factor * grad[here + c];
        }
      }
      for (uint32_t t = 0; t < shape.tokens; ++t) {
        const uint64_t there = t * shape.width() + column;
        const T slope = scale * probability[at + t] * (along[t] - mean);
        for (uint32_t c = 0; c < shape.head_width; ++c) {
          to.query[here + c] += slope * key[there + c];
          to.key[there + c] += slope * query[here + c];
        }
      }
    }
  }
}

class AttentionFunction : public torch::autograd::Function<AttentionFunction> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& query,
                            const at::Tensor& key, const at::Tensor& value, int64_t heads,
                            const DropoutSite& site, Workspace* workspace) {
    SaveWorkspace(context, workspace);
    context->saved_data["heads"] = heads;
    const AttentionShape shape = ShapeOf(query, key, heads);
    const at::Tensor probability =
        EmptyIn(workspace, query, shape.rows, static_cast<int64_t>(shape.scores()));
    const at::Tensor mask = site.p == 0.0F ? at::Tensor() : at::empty_like(probability);
    at::Tensor out = at::empty_like(query);
    InTypeOf(query, [&]<typename T>(T) {
      const T* q = query.const_data_ptr<T>();
      const T* k = key.const_data_ptr<T>();
      const T* v = value.const_data_ptr<T>();
      T* m = mask.defined() ? mask.data_ptr<T>() : nullptr;
      T* p = probability.data_ptr<T>();
      T* o = out.data_ptr<T>();
      ParallelRows(shape.rows, 1, [=, &site](uint32_t begin, uint32_t end) {
        for (uint64_t r = begin; r < end; ++r) {
          T* const own = m == nullptr ? nullptr : m + r * shape.scores();
          if (own != nullptr) DrawMask(site, site.nodes[r], shape.scores(), own);
          AttendRow(shape, q + r * shape.queries * shape.width(),
                    k + r * shape.tokens * shape.width(), v + r * shape.tokens * shape.width(), own,
                    p + r * shape.scores(), o + r * shape.queries * shape.width());
        }
      });
    });
    variable_list kept = {query, key, value, probability};
    if (mask.defined()) kept.push_back(mask);
    context->save_for_backward(kept);
    return out;
  }

  static variable_list backward(AutogradContext* context, variable_list grads) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor grad = grads[0].contiguous();
    const AttentionShape shape = ShapeOf(saved[0], saved[1], context->saved_data["heads"].toInt());
    at::Tensor grad_query = at::empty_like(saved[0]);
    at::Tensor grad_key = at::empty_like(saved[1]);
    at::Tensor grad_value = at::empty_like(saved[2]);
    InTypeOf(saved[0], [&]<typename T>(T) {
      const T* q = saved[0].const_data_ptr<T>();
      const T* k = saved[1].const_data_ptr<T>();
      const T* v = saved[2].const_data_ptr<T>();
      const T* p = saved[3].const_data_ptr<T>();
      const T* m = saved.size() > 4 ? saved[4].const_data_ptr<T>() : nullptr;
      const T* g = grad.const_data_ptr<T>();
      T* dq = grad_query.data_ptr<T>();
      T* dk = grad_key.data_ptr<T>();
      T* dv = grad_value.data_ptr<T>();
      ParallelRows(shape.rows, 1, [=](uint32_t begin, uint32_t end) {
        std::vector<T> along(shape.tokens);
        for (uint64_t r = begin; r < end; ++r) {
          const uint64_t queries = r * shape.queries * shape.width();
          const uint64_t tokens = r * shape.tokens * shape.width();
          AttendRowBackward<T>(shape, q + queries, k + tokens, v + tokens,
                               m == nullptr ? nullptr : m + r * shape.scores(),
                               p + r * shape.scores(), g + queries, along.data(),
                               {dq + queries, dk + tokens, dv + tokens});
        }
      });
    });
    return {grad_query, grad_key, grad_value, at::Tensor(), at::Tensor(), at::Tensor()};
  }

 private:
  static AttentionShape ShapeOf(const at::Tensor& query, const at::Tensor& key, int64_t heads) {
    return {RowsOf(query), static_cast<uint32_t>(query.size(1)), static_cast<uint32_t>(key.size(1)),
            static_cast<uint32_t>(heads), static_cast<uint32_t>(query.size(2) / heads)};
  }
};

}  // namespace

at::Tensor BatchNorm(const at::Tensor& x, const at::Tensor& scale, const at::Tensor& shift,
                     BatchMoments* moments, Workspace* workspace) {
  const at::Tensor found = EmptyIn(workspace, x, 2, x.size(1));
  at::Tensor out = BatchNormFunction::apply(x, scale, shift, found, workspace);
  const auto rows = static_cast<double>(x.size(0));
  moments->mean = found[0];
  moments->variance = found[1].mul(rows > 1 ? rows / (rows - 1) : 1.0);
  return out;
}

at::Tensor BatchNormBy(const at::Tensor& x, const at::Tensor& scale, const at::Tensor& shift,
                       const BatchMoments& moments, Workspace* workspace) {
  const auto columns = static_cast<uint64_t>(x.size(1));
  const at::Tensor inverse = EmptyIn(workspace, x, 0, x.size(1));
  at::Tensor out = EmptyIn(workspace, x, x.size(0), x.size(1));
  InTypeOf(x, [&]<typename T>(T) {
    InvertDeviations(moments.variance.const_data_ptr<T>(), columns, inverse.data_ptr<T>());
    const Columns<T> by{moments.mean.const_data_ptr<T>(), inverse.const_data_ptr<T>(),
                        scale.const_data_ptr<T>(), shift.const_data_ptr<T>()};
    NormalizeColumns(x.const_data_ptr<T>(), RowsOf(x), columns, by, out.data_ptr<T>());
  });
  return out;
}

at::Tensor PRelu(const at::Tensor& x, const at::Tensor& slope, Workspace* workspace) {
  return PReluFunction::apply(x, slope, workspace);
}

at::Tensor Dropout(const at::Tensor& x, const DropoutSite& site) {
  if (site.p == 0.0F) return x;
  const at::Tensor mask = at::ones_like(x.detach()).view({x.size(0), -1});
  InTypeOf(x, [&]<typename T>(T) {
    const auto op = DropoutOf<T>(site, mask);
    ParallelRows(RowsOf(mask), kGrainRows,
                 [&op](uint32_t begin, uint32_t end) { RunDropout(op, begin, end); });
  });
  return x.mul(mask.view(x.sizes()));
}

at::Tensor AttendTokens(const TokenAttention& input, Workspace* workspace) {
  return AttentionFunction::apply(input.query.contiguous(), input.key.contiguous(),
                                  input.value.contiguous(), static_cast<int64_t>(input.heads),
                                  input.dropout, workspace);
}

}  // namespace gnnd
