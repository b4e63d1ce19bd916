// Modified Bessel functions of the first kind, i0 and i1, and times e^-|x|, i0e and i1e; floats in double. The
// polynomials were fitted by us in 45 digits.
#pragma once

#include "device/math/exp.h"

namespace ae::math {

struct BesselConstants {
  // In |x| / 4 - 1 on |x| <= 8, and in 16 / |x| - 1 beyond.
  // i0e(x); error 2^-53.0
  static constexpr double kI0Small[] = {
      0x1.a7f09f8eedf5ap-3,  -0x1.cedda0048620cp-4,  0x1.8322d1d8a3bcdp-4,  -0x1.6cb8d0c915893p-4,
      0x1.65c235bfea525p-4,  -0x1.5c028fe6476f7p-4,  0x1.44b6196a81ccap-4,  -0x1.1cd73a8e6f3d9p-4,
      0x1.d11e10f4dfa6fp-5,  -0x1.602411e26e1e2p-5,  0x1.ee6f5662ec724p-6,  -0x1.427b0996a6054p-6,
      0x1.87e866aff9c28p-7,  -0x1.bd258e7552c48p-8,  0x1.da1ab0ffbed1p-9,   -0x1.daf9b709c141bp-10,
      0x1.c0f3e4bcd5e4fp-11, -0x1.917ff39119b7bp-12, 0x1.549d75133a92bp-13, -0x1.12c7a39f1c1bdp-14,
      0x1.a681cc3a72d71p-16, -0x1.363e2e9d2e6fap-17, 0x1.b42fc795f8947p-19, -0x1.25ba2e79d467bp-20,
      0x1.7a192da16a51bp-22, -0x1.d6c2d69ec9ad7p-24, 0x1.23c85af95d499p-25, -0x1.4efc8b715c1ebp-27,
      0x1.2cc0a9fd2c65bp-29, -0x1.4d509b6a71026p-31, 0x1.4e94f6b75fda6p-32, -0x1.488a1f64814cp-34};
  // i0e(x) sqrt(x); error 2^-53.8
  static constexpr double kI0Large[] = {
      0x1.9bd428ad249a5p-2,   0x1.b87969bb93bd4p-9,  0x1.1daa72b5e6473p-13,  0x1.75e5ee6f84d6dp-17,
      0x1.8e513a0d714ecp-20,  0x1.3f49b022325a4p-22, 0x1.7d0f9ebc1e923p-24,  0x1.51ca8a43c5867p-25,
      0x1.721a6c9412cc6p-26,  0x1.0418890810fd5p-27, -0x1.cd1bbb7e78d8fp-28, -0x1.cf7b2a281747cp-27,
      -0x1.7eb47ab6ed824p-28, 0x1.0d30da46be694p-27, 0x1.0fd0c47e96132p-27,  -0x1.1f8eec39db734p-28,
      -0x1.db2a01c53da5cp-28, 0x1.6cdf212298d25p-29, 0x1.54a70ee464057p-28,  -0x1.037f76b07b069p-29,
      -0x1.867bc3cbb9c62p-29, 0x1.4790a3febdb27p-30, 0x1.4688ba473a281p-30,  -0x1.2f5755d7c75ccp-31,
      -0x1.5a02834cfe50ap-32, 0x1.5d4c48ff4b553p-33, 0x1.57c91289c49dp-35,   -0x1.71e66b5022dc6p-36};
  // i1e(x) / x; error 2^-51.7
  static constexpr double kI1Small[] = {
      0x1.6e14eb8e5d319p-5,  -0x1.f4bb071a7752bp-5,  0x1.16c390ddb08edp-4,  -0x1.1881379ffb5c2p-4,
      0x1.0530f817ff9e1p-4,  -0x1.c4daa51341c3bp-5,  0x1.6df95e8be14bep-5,  -0x1.13d5f358a5495p-5,
      0x1.84125b0cff371p-6,  -0x1.fe3d9c0190509p-7,  0x1.3a0c1a03dcddfp-7,  -0x1.6ab6a3890a802p-8,
      0x1.89f8a642f4444p-9,  -0x1.93682669e48d9p-10, 0x1.8656c6be39e57p-11, -0x1.65bf68665607bp-12,
      0x1.3742cd4d7bcaap-13, -0x1.01a419b25a55dp-14, 0x1.96975305999c2p-16, -0x1.326bebe2f6505p-17,
      0x1.b9e739571152fp-19, -0x1.3168363eb6772p-20, 0x1.955c19e30b5bcp-22, -0x1.02829f340b5f1p-23,
      0x1.3c6b80c5c46cep-25, -0x1.76d304a34972dp-27, 0x1.b78fb468d5a2ap-29, -0x1.e31ddb713baabp-31,
      0x1.b033676fd4db7p-33, -0x1.c88b08c03638cp-35, 0x1.9d8a807401a72p-36, -0x1.87ef6eb7c8297p-38};
  // i1e(x) sqrt(x); error 2^-56.1
  static constexpr double kI1Large[] = {
      0x1.8ebe783a8403p-2,    -0x1.3f796198ee63fp-7,  -0x1.cbc54df1ecdc1p-13, -0x1.f89c230420dfap-17,
      -0x1.ec8e1006cdf53p-20, -0x1.7613875eab7b4p-22, -0x1.ad8de1aad92f3p-24, -0x1.727658ca338efp-25,
      -0x1.91764cf65a9b2p-26, -0x1.2211feadc6bdbp-27, 0x1.cc19026149683p-28,  0x1.e4d7bca505b1cp-27,
      0x1.a64e66d75b662p-28,  -0x1.0fdaee23d9456p-27, -0x1.20365dfa1f6p-27,   0x1.1821ea6088955p-28,
      0x1.f1b1621f0883p-28,   -0x1.5b7ca90b032c4p-29, -0x1.6312005cbf934p-28, 0x1.edd954cbfa5d9p-30,
      0x1.964de25f6916bp-29,  -0x1.3a0f7579a36b1p-30, -0x1.539c2b1097329p-30, 0x1.24f329f3aaf5ap-31,
      0x1.67e0328d6d137p-32,  -0x1.5325236b8c588p-33, -0x1.65a118d9b1ee5p-35, 0x1.688485f6f6c06p-36};
};

template <class D, int K, int L>
AE_INLINE D scaled_bessel(D magnitude, const double (&small)[K], const double (&large)[L]) {
  const D near = horner(D(magnitude * D(0.25) - D(1.0)), small);
  const D far = horner(D(D(16.0) / magnitude - D(1.0)), large) / sqrt(magnitude);
  return select(magnitude <= D(8.0), near, far);
}

template <class D>
AE_INLINE D i0e_of_double(D x) {
  return scaled_bessel(D(abs(x)), BesselConstants::kI0Small, BesselConstants::kI0Large);
}
template <class D>
AE_INLINE D i1e_of_double(D x) {
  const D magnitude = abs(x);
  const D result = scaled_bessel(magnitude, BesselConstants::kI1Small, BesselConstants::kI1Large);
  const D positive = select(magnitude <= D(8.0), D(magnitude * result), result);
  return select(x < D(0.0), D(-positive), positive);
}

/// scaled * e^|x|, which may be finite where e^|x| is not.
template <class D>
AE_INLINE D times_exp(D scaled, D x) {
  const D half = exp(D(abs(x) * D(0.5)));
  return scaled * half * half;
}

template <class V>
AE_INLINE V i0e(V number) {
  using D = rebind<V, double>;
  return convert<scalar_of<V>>(D(i0e_of_double(D(convert<double>(number)))));
}
template <class V>
AE_INLINE V i1e(V number) {
  using D = rebind<V, double>;
  return convert<scalar_of<V>>(D(i1e_of_double(D(convert<double>(number)))));
}
template <class V>
AE_INLINE V i0(V number) {
  using D = rebind<V, double>;
  const D x = convert<double>(number);
  return convert<scalar_of<V>>(D(times_exp(D(i0e_of_double(x)), x)));
}
template <class V>
AE_INLINE V i1(V number) {
  using D = rebind<V, double>;
  const D x = convert<double>(number);
  return convert<scalar_of<V>>(D(times_exp(D(i1e_of_double(x)), x)));
}

}  // namespace ae::math
