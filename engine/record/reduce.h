// Descriptions of reductions (see kernel.h) that other files use too.
#pragma once

#include "engine/record/shape.h"

namespace ae::engine {

/// Where a reduction goes: the node's shape and mask, and the shape of the result.
struct Reduction {
  at::DimVector sizes;  // at least one dimension
  uint32_t mask = 0;
  int64_t count = 1;  // elements that each result is made of
  at::DimVector result;
};

/// The reduction of `self` over `dims`; false if PyTorch would reject it or there is nothing to reduce.
bool plan_reduction(const at::Tensor& self, at::OptionalIntArrayRef dims, bool keepdim, Reduction& reduction);

/// A dtype that extremes and counts are taken of.
inline bool is_plain(const at::Tensor& self) { return contains(kFloats | kInts | kBools, self.scalar_type()); }

/// The same, or complex.
inline bool is_plain_or_complex(const at::Tensor& self) { return contains(kAnyValue.types, self.scalar_type()); }

/// Reduces `self` over `dims` (empty: all). The call's result or target has dtype `type`; contiguous. False for what is
/// not recorded: nothing to reduce, invalid dims, targets that PyTorch rejects or that overlap the input.
bool reduce(Call& call, Opcode opcode, at::ScalarType common, at::ScalarType type, const at::Tensor& self,
            at::OptionalIntArrayRef dims, bool keepdim, c10::ArrayRef<Input> more_inputs = {},
            c10::ArrayRef<int64_t> attributes = {});

bool sum(Call& call, const at::Tensor& self, at::OptionalIntArrayRef dims, bool keepdim,
         std::optional<at::ScalarType> dtype);
bool mean(Call& call, const at::Tensor& self, at::OptionalIntArrayRef dims, bool keepdim,
          std::optional<at::ScalarType> dtype);
bool vector_norm(Call& call, const at::Tensor& self, const at::Scalar& ord, at::OptionalIntArrayRef dims, bool keepdim,
                 std::optional<at::ScalarType> dtype);
bool max_of_all(Call& call, const at::Tensor& self);

}  // namespace ae::engine
