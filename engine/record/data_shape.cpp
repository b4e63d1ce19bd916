// nonzero, masked_select, the unique family and bincount: see data_shape.h.
#include "engine/record/data_shape.h"

#include <ATen/ops/_unique.h>
#include <ATen/ops/_unique2.h>
#include <ATen/ops/bincount.h>
#include <ATen/ops/masked_select.h>
#include <ATen/ops/nonzero.h>
#include <ATen/ops/unique_consecutive.h>
#include <ATen/ops/unique_dim.h>
#include <ATen/ops/unique_dim_consecutive.h>

#include <tuple>

#include "engine/record/kernel.h"
#include "engine/record/result.h"

namespace ae::engine {
namespace {

using at::Tensor;
using Pair = std::tuple<Tensor, Tensor>;
using Three = std::tuple<Tensor, Tensor, Tensor>;

/// The same for a kernel that makes several tensors.
template <class Make>
auto all_on_host(const Tensor& self, Make make) {
  check_devices({&self});
  const Tensor host = values_of(self);
  return std::apply([](const auto&... made) { return std::make_tuple(own(made)...); },
                    run_on_host([&] { return make(host); }));
}

/// The out= form: false if the CPU would refuse the target.
bool give(const Tensor& target, const Tensor& made, std::initializer_list<const Tensor*> inputs) {
  Call call = Call::out(target);
  if (!prepare_result(call, made.sizes(), made.scalar_type(), inputs, made.strides())) return false;
  target.copy_(made);
  return true;
}

Tensor find_nonzero(const Tensor& self) {
  check_devices({&self});
  return on_host(self, [](const Tensor& host) { return at::nonzero(host); });
}

Tensor& nonzero_out(const Tensor& self, Tensor& out) {
  if (!is_neuron(out) || out.scalar_type() != at::kLong || !give(out, find_nonzero(self), {&self}))
    return Fallback<Tensor&(const Tensor&, Tensor&)>::call("nonzero.out", self, out);
  return out;
}

Tensor select_masked(const Tensor& self, const Tensor& mask) {
  check_devices({&self, &mask});
  const Tensor host_mask = values_of(mask);
  return on_host(self, [&](const Tensor& host) { return at::masked_select(host, host_mask); });
}

Tensor& masked_select_out(const Tensor& self, const Tensor& mask, Tensor& out) {
  if (!is_neuron(out) || out.scalar_type() != self.scalar_type() ||
      !give(out, select_masked(self, mask), {&self, &mask}))
    return Fallback<Tensor&(const Tensor&, const Tensor&, Tensor&)>::call("masked_select.out", self, mask, out);
  return out;
}

Pair unique(const Tensor& self, bool sorted, bool inverse) {
  return all_on_host(self, [&](const Tensor& host) { return at::_unique(host, sorted, inverse); });
}

Three unique2(const Tensor& self, bool sorted, bool inverse, bool counts) {
  return all_on_host(self, [&](const Tensor& host) { return at::_unique2(host, sorted, inverse, counts); });
}

Three unique_dim(const Tensor& self, int64_t dim, bool sorted, bool inverse, bool counts) {
  return all_on_host(self, [&](const Tensor& host) { return at::unique_dim(host, dim, sorted, inverse, counts); });
}

Three unique_consecutive(const Tensor& self, bool inverse, bool counts, std::optional<int64_t> dim) {
  return all_on_host(self, [&](const Tensor& host) { return at::unique_consecutive(host, inverse, counts, dim); });
}

Three unique_dim_consecutive(const Tensor& self, int64_t dim, bool inverse, bool counts) {
  return all_on_host(self, [&](const Tensor& host) { return at::unique_dim_consecutive(host, dim, inverse, counts); });
}

Tensor bincount(const Tensor& self, const std::optional<Tensor>& weights, c10::SymInt minlength) {
  check_devices({&self});
  if (has(weights)) check_devices({&*weights});
  const std::optional<Tensor> host_weights = has(weights) ? std::optional(values_of(*weights)) : std::nullopt;
  return on_host(self, [&](const Tensor& host) { return at::bincount(host, host_weights, minlength.expect_int()); });
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("nonzero", &find_nonzero);
  m.impl("nonzero.out", &nonzero_out);
  m.impl("masked_select", &select_masked);
  m.impl("masked_select.out", &masked_select_out);
  m.impl("_unique", &unique);
  m.impl("_unique2", &unique2);
  m.impl("unique_dim", &unique_dim);
  m.impl("unique_consecutive", &unique_consecutive);
  m.impl("unique_dim_consecutive", &unique_dim_consecutive);
  m.impl("bincount", &bincount);
}

}  // namespace
}  // namespace ae::engine
