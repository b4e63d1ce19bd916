// Cutting calls that work along one dimension: pieces are stretches of another one.
#pragma once

#include <c10/util/Exception.h>

#include "engine/library/call.h"

namespace ae::engine::library {

/// A cutter (out_call.h) for calls whose first attribute is the dimension that they work along, not negative. Cuts the
/// first other dimension in which all operands of the last output's rank have more than one element, as far as the
/// shortest of them goes (gather and scatter leave alone what their index does not reach). Operands of another rank are
/// whole in every piece.
std::vector<Piece> beside_dim(const Piece& all, std::span<const int64_t> attributes);

/// Runs a call without its warnings: the worker has nobody to warn, recording has done so.
template <class Call>
void quietly(Call call) {
  struct Silent final : c10::WarningHandler {
    void process(const c10::Warning&) override {}
  } silent;
  const c10::WarningUtils::WarningHandlerGuard guard(&silent);
  call();
}

}  // namespace ae::engine::library
