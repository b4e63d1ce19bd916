// Checks of values that are only known when they are computed: fences.
//
//   check_targets  in(target) -> nothing; attributes: number of classes, the target that is ignored
#include "engine/library/call.h"
#include "engine/library/operators.h"
#include "engine/record/record.h"

namespace ae::engine::library {
namespace {

std::shared_ptr<const device::LibraryCall> make_check_targets(const fusion::NodeView& node) {
  const auto attributes = attributes_of(node);
  return make_call({whole(node)}, [classes = attributes[0], ignored = attributes[1]](std::span<at::Tensor> t, Scalars) {
    const at::Tensor targets = t[0].contiguous();
    const auto* target = targets.const_data_ptr<int64_t>();
    for (int64_t i = 0; i < targets.numel(); ++i)
      TORCH_CHECK_INDEX(target[i] == ignored || (target[i] >= 0 && target[i] < classes), "Target ", target[i],
                        " is out of bounds.");
  });
}

}  // namespace

const int kCheckTargets = register_library("check_targets", make_check_targets);

}  // namespace ae::engine::library
