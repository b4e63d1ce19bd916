// Reductions in the canonical order of device/tile_program.h.
#include <algorithm>
#include <cstring>
#include <limits>
#include <vector>

#include "device/host/binary_kernels.h"
#include "device/host/kernels.h"
#include "device/math/vec.h"
#include "device/tile_program.h"

namespace ae::device::host {
namespace {

static_assert(kReductionLanes == kGroup && kReductionChunk % kReductionLanes == 0);

// Operators work on Vec<T, N> and on numbers alike; their T is unsigned where integers wrap.
struct Sum {
  template <class T>
  static constexpr T identity() {
    return T(0);
  }
  template <class V>
  static V apply(V x, V y) {
    return x + y;
  }
};
struct Product {
  template <class T>
  static constexpr T identity() {
    return T(1);
  }
  template <class V>
  static V apply(V x, V y) {
    return x * y;
  }
};
struct Maximum {
  template <class T>
  static constexpr T identity() {
    return std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity()
                                                : std::numeric_limits<T>::lowest();
  }
  template <class V>
  static V apply(V x, V y) {
    const V larger = math::select(x < y, y, x);
    if constexpr (!std::is_floating_point_v<math::scalar_of<V>>)
      return larger;
    else
      return math::select(x != x, x, math::select(y != y, y, larger));
  }
};
struct Minimum {
  template <class T>
  static constexpr T identity() {
    return std::numeric_limits<T>::has_infinity ? std::numeric_limits<T>::infinity() : std::numeric_limits<T>::max();
  }
  template <class V>
  static V apply(V x, V y) {
    const V smaller = math::select(y < x, y, x);
    if constexpr (!std::is_floating_point_v<math::scalar_of<V>>)
      return smaller;
    else
      return math::select(x != x, x, math::select(y != y, y, smaller));
  }
};
struct Any {
  template <class T>
  static constexpr T identity() {
    return 0;
  }
  template <class V>
  static V apply(V x, V y) {
    return x | y;
  }
};
struct All {
  template <class T>
  static constexpr T identity() {
    return 1;
  }
  template <class V>
  static V apply(V x, V y) {
    return x & y;
  }
};

template <class Op, class T>
struct Reduce {
  using V = math::Vec<T, kReductionLanes>;

  template <int N>
  static T combine(math::Vec<T, N> lanes) {
    if constexpr (N > 4) {
      return combine(Op::apply(math::low_half(lanes), math::high_half(lanes)));
    } else {
      return combine_pair(combine_pair(lanes[0], lanes[2]), combine_pair(lanes[1], lanes[3]));
    }
  }
  static T combine_pair(T x, T y) { return static_cast<T>(Op::apply(x, y)); }

  static T chunk(const T* x, int64_t n) {
    V lanes(Op::template identity<T>());
    int64_t i = 0;
    for (; i + kReductionLanes <= n; i += kReductionLanes) lanes = Op::apply(lanes, V::load(x + i));
    if (i < n) {  // lanes beyond the end keep what they have
      T last[kReductionLanes];
      lanes.store(last);
      for (int64_t l = 0; i + l < n; ++l) last[l] = combine_pair(last[l], x[i + l]);
      lanes = V::load(last);
    }
    return combine(lanes);
  }

  static T row(const T* x, int64_t n) {
    if (n <= kReductionChunk) return chunk(x, n);
    std::vector<T> results((n + kReductionChunk - 1) / kReductionChunk);
    for (size_t i = 0; i < results.size(); ++i) {
      const int64_t first = static_cast<int64_t>(i) * kReductionChunk;
      results[i] = chunk(x + first, std::min<int64_t>(kReductionChunk, n - first));
    }
    return row(results.data(), static_cast<int64_t>(results.size()));
  }

  static void rows(void* dst, int64_t dst_pitch, const void* x, int64_t count, int64_t n, int64_t pitch) {
    for (int64_t r = 0; r < count; ++r) {
      static_cast<T*>(dst)[r * dst_pitch] = row(static_cast<const T*>(x) + r * pitch, n);
    }
  }

  static void start(void* accumulators, int64_t width) {
    std::fill_n(static_cast<T*>(accumulators), width * kReductionLanes, Op::template identity<T>());
  }

  static void accumulate(void* accumulators, const void* data, int64_t n, int64_t width, int64_t pitch) {
    const T* x = static_cast<const T*>(data);
    for (int64_t w = 0; w < width; w += kGroup) {
      for (int64_t lane = 0; lane < kReductionLanes && lane < n; ++lane) {
        T* at = static_cast<T*>(accumulators) + lane * width + w;
        V sum = V::load(at);
        for (int64_t i = lane; i < n; i += kReductionLanes) sum = Op::apply(sum, V::load(x + i * pitch + w));
        sum.store(at);
      }
    }
  }

  static void finish(void* dst, const void* accumulators, int64_t width) {
    const T* from = static_cast<const T*>(accumulators);
    for (int64_t w = 0; w < width; w += kGroup) {
      V lanes[kReductionLanes];
      for (int l = 0; l < kReductionLanes; ++l) lanes[l] = V::load(from + l * width + w);
      for (int step = kReductionLanes / 2; step >= 1; step /= 2) {
        for (int l = 0; l < step; ++l) lanes[l] = Op::apply(lanes[l], lanes[l + step]);
      }
      lanes[0].store(static_cast<T*>(dst) + w);
    }
  }

  static void columns(void* dst, const void* data, int64_t n, int64_t width, int64_t pitch) {
    const T* x = static_cast<const T*>(data);
    const int64_t chunks = std::max<int64_t>(1, (n + kReductionChunk - 1) / kReductionChunk);
    thread_local std::vector<T> accumulators;
    accumulators.resize(std::max<size_t>(accumulators.size(), width * kReductionLanes));
    std::vector<T> partial(chunks > 1 ? chunks * width : 0);
    for (int64_t chunk = 0; chunk < chunks; ++chunk) {
      const int64_t first = chunk * kReductionChunk;
      start(accumulators.data(), width);
      accumulate(accumulators.data(), x + first * pitch, std::min<int64_t>(kReductionChunk, n - first), width, pitch);
      finish(chunks == 1 ? dst : partial.data() + chunk * width, accumulators.data(), width);
    }
    if (chunks > 1) columns(dst, partial.data(), chunks, width, width);
  }

  static const ReduceKernels* kernels() {
    static constexpr ReduceKernels kKernels{&rows, &columns, &start, &accumulate, &finish};
    return &kKernels;
  }
};

/// Sums and products of integers wrap.
template <class T>
struct Wrapping {
  using type = T;
};
template <>
struct Wrapping<int8_t> {
  using type = uint8_t;
};
template <>
struct Wrapping<int16_t> {
  using type = uint16_t;
};
template <>
struct Wrapping<int32_t> {
  using type = uint32_t;
};
template <>
struct Wrapping<int64_t> {
  using type = uint64_t;
};

template <class T>
const ReduceKernels* number_kernels(Primitive op) {
  switch (op) {
    case Primitive::reduce_sum: return Reduce<Sum, typename Wrapping<T>::type>::kernels();
    case Primitive::reduce_prod: return Reduce<Product, typename Wrapping<T>::type>::kernels();
    case Primitive::reduce_max: return Reduce<Maximum, T>::kernels();
    case Primitive::reduce_min: return Reduce<Minimum, T>::kernels();
    default: return nullptr;
  }
}

}  // namespace

const ReduceKernels* reduce_kernels(Primitive op, DType type) {
  switch (type) {
    case DType::kBool:
      if (op == Primitive::reduce_any || op == Primitive::reduce_max || op == Primitive::reduce_sum)
        return Reduce<Any, uint8_t>::kernels();
      return Reduce<All, uint8_t>::kernels();
    case DType::kU8: return number_kernels<uint8_t>(op);
    case DType::kI8: return number_kernels<int8_t>(op);
    case DType::kI16: return number_kernels<int16_t>(op);
    case DType::kI32: return number_kernels<int32_t>(op);
    case DType::kI64: return number_kernels<int64_t>(op);
    case DType::kU16: return number_kernels<uint16_t>(op);
    case DType::kU32: return number_kernels<uint32_t>(op);
    case DType::kU64: return number_kernels<uint64_t>(op);
    case DType::kF32: return number_kernels<float>(op);
    case DType::kF64: return number_kernels<double>(op);
    default: return nullptr;
  }
}

double cost_of(Primitive op, DType type) {
  const double width = size_of(type) / 4.0 + 0.2;
  switch (op) {
    case Primitive::broadcast:
    case Primitive::load:
    case Primitive::store:
    case Primitive::iota: return 1.5 * width;
    case Primitive::div:
    case Primitive::sqrt:
    case Primitive::reciprocal:
    case Primitive::rsqrt: return 4 * width;
    case Primitive::pow:
    case Primitive::fmod:
    case Primitive::remainder:
    case Primitive::floor_div:
    case Primitive::atan2:
    case Primitive::hypot: return 40 * width;
    case Primitive::trunc_div: return is_floating(type) ? 5 : 20;
    case Primitive::random_bits: return 12;
    default: return op >= Primitive::exp && op <= Primitive::sigmoid ? 12 * width : width;
  }
}

}  // namespace ae::device::host
