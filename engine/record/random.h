// What a random node draws from: taken when it is recorded.
#pragma once

#include "engine/backend/generator.h"
#include "engine/record/record.h"

namespace ae::engine {

/// The seed and offset inputs of one random node.
struct Draws {
  explicit Draws(const std::optional<at::Generator>& generator) : Draws(generator_or_default(generator).take(1)) {}
  Input seed, offset;

 private:
  explicit Draws(std::pair<uint64_t, uint64_t> taken)
      : seed(at::Scalar(static_cast<int64_t>(taken.first)), at::kLong),
        offset(at::Scalar(static_cast<int64_t>(taken.second)), at::kLong) {}
};

}  // namespace ae::engine
