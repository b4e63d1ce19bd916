// erfinv, and ndtri, the inverse of the normal distribution function; floats in double. The polynomials were fitted by
// us in 45 digits, in t in [-1, 1] over the middle of the range that each comment names.
#pragma once

#include "device/math/log.h"

namespace ae::math {

struct ErfInvConstants {
  // erfinv(x) / x in w = -log(1 - x^2), or in its root
  // 0 <= w <= 5; error 2^-53.1
  static constexpr double kNear[] = {
      0x1.805c5cfcedef5p+0,   0x1.3bb315fc7682cp-1,   -0x1.abc1e0b47dd4cp-6,  -0x1.40b177277cfd5p-6,
      0x1.175c3f2281a62p-7,   -0x1.ff993aa353396p-12, -0x1.b553ca7b7512ep-11, 0x1.3262570c1783cp-12,
      0x1.57785e0f6cb73p-16,  -0x1.5b8eb54b3689cp-15, 0x1.225648aa09d86p-17,  0x1.7ebedcd906686p-19,
      -0x1.f1a3fff44e17bp-20, 0x1.239006a0552d2p-23,  0x1.ac6caca1d0239p-23,  -0x1.3001ec9ba8844p-24,
      -0x1.c86d5537eadd8p-28, 0x1.768bb44e61df2p-27,  -0x1.1b693cefbc2cp-29,  -0x1.dc3fefc63b957p-31,
      0x1.12067154a3d26p-31,  -0x1.027cbb659471cp-36, -0x1.07a51bd0a4b72p-34, 0x1.f5d3d8dbfe381p-37,
      0x1.fc832bdbfe47dp-39,  -0x1.af6327a72340cp-40};
  // 2.23 <= sqrt(w) <= 3.75; error 2^-53.5
  static constexpr double kMiddle[] = {
      0x1.6956c9369b85bp+1,   0x1.85b28da16bb52p-1,   0x1.6e5b987728809p-8,   -0x1.c518993344d39p-9,
      0x1.007b9feb3aaefp-9,   -0x1.e4f5e4315a55cp-11, 0x1.2dbf41ce1dc2fp-12,  -0x1.345e0dacd9104p-16,
      -0x1.19cf30495e51p-15,  0x1.2a13948d2f651p-16,  -0x1.79ebeb3dd4c87p-19, -0x1.4f1eb656ec84ap-20,
      0x1.c463b61527cd5p-21,  -0x1.591b0ef257ce6p-23, -0x1.693c85f656ed9p-25, 0x1.26011d005fc2cp-25,
      -0x1.0b681c00769cap-27, -0x1.12c224a52ad38p-30, 0x1.644f9bbec165bp-30,  -0x1.a08317f9112dap-32,
      -0x1.e54c4aa7485d7p-36, 0x1.c7e08856ae5e7p-35,  -0x1.06611dc5c396p-37,  -0x1.086c55d94bbc4p-39};
  // 3.75 <= sqrt(w) <= 6.25; error 2^-55.6
  static constexpr double kFar[] = {
      0x1.3664ddd1ad7fbp+2,   0x1.434bd067a894ep+0,   -0x1.c68e32c9c8516p-13, -0x1.b861b62186cabp-12,
      0x1.851887e85612ep-13,  -0x1.f7da74aced163p-15, 0x1.21aad8ed5df35p-16,  -0x1.3dc4a46930f2ap-18,
      0x1.6e7b980c03107p-20,  -0x1.0e4ae082044e3p-21, 0x1.2239e33bfc754p-22,  -0x1.7c5032a3cfb6cp-23,
      0x1.e845b759a289bp-24,  -0x1.14440c1af3978p-24, 0x1.039c5fde591ap-25,   -0x1.719b5a11fdc9cp-27,
      0x1.18c0c5661d302p-29,  0x1.443086fb7240fp-31,  -0x1.a6b6d58d97af7p-31, 0x1.dc638adaea34p-32,
      -0x1.5d68bf4095b92p-33, 0x1.2e4fb74cb347ap-37,  0x1.af1c3a490750fp-36,  -0x1.1c964c92787d5p-37};

  // -ndtri(e^(-s^2 / 2)) / s
  // 2 <= s <= 4; error 2^-53.5
  static constexpr double kTailNear[] = {
      0x1.863ff78c90505p-1,   0x1.028f57e97e811p-3,  -0x1.b2ae38638f084p-5,  0x1.4ed7f9655d48ep-6,
      -0x1.ed88956231815p-8,  0x1.62610b064f8abp-9,  -0x1.f482ab7ac55b2p-11, 0x1.5d7832cb59eb6p-12,
      -0x1.e41b0c2429acp-14,  0x1.4d52ed66c396cp-15, -0x1.c8f313b03a18ep-17, 0x1.381dd87110509p-18,
      -0x1.a9307f3fa4b7bp-20, 0x1.20f48b54dbeap-21,  -0x1.87fc0714ccaf5p-23, 0x1.0978cc8fe8844p-24,
      -0x1.67750f6572441p-26, 0x1.e5acdb3fa882p-28,  -0x1.43e17e86b8089p-29, 0x1.b4d18f78e8015p-31,
      -0x1.433e65db68598p-32, 0x1.b3326929d8a41p-34, -0x1.3555a5f20b1dfp-36, 0x1.a0bddf4e4096ep-38,
      -0x1.064f8d6bd3db9p-37, 0x1.6051920dc77bcp-39};
  // 4 <= s <= 9; error 2^-54.2
  static constexpr double kTailMiddle[] = {
      0x1.dd8e72a60322ap-1,   0x1.61f1ae05e4dfbp-5,   -0x1.6464aac0e295p-6,   0x1.46d736a5b51a3p-7,
      -0x1.1d7242f5a535ap-8,  0x1.e3fc41cac9e09p-10,  -0x1.9241dff11a519p-11, 0x1.49abb712375cdp-12,
      -0x1.0b64bd78d7676p-13, 0x1.ae57526aad481p-15,  -0x1.5828211d5bb8bp-16, 0x1.11e0aa67cafd8p-17,
      -0x1.b228f0fd6c64bp-19, 0x1.56feedf6a0464p-20,  -0x1.0e4049dc95274p-21, 0x1.a8df4001af642p-23,
      -0x1.4d0b25c0c09fbp-24, 0x1.04db51e90fd08p-25,  -0x1.9c05325930ce4p-27, 0x1.41d415e4e7c47p-28,
      -0x1.cfbe49aa9d221p-30, 0x1.69a8e95f65ccep-31,  -0x1.99b4441afa261p-32, 0x1.3e8adba4970e7p-33,
      0x1.e8a90f35c91ecp-38,  -0x1.74f6b2320f878p-39, -0x1.521cfeb2990acp-36, 0x1.064870076b201p-37};
  // 9 <= s <= 20; error 2^-54.9
  static constexpr double kTailFar[] = {
      0x1.f73476acb99fap-1,   0x1.715fde2436e36p-7,  -0x1.79472a794bbd6p-8,  0x1.5d7c1eb89738cp-9,
      -0x1.336d0dfb5d48p-10,  0x1.05f5949ba8bcdp-11, -0x1.b4f49bd2e5311p-13, 0x1.66dbebf976a63p-14,
      -0x1.2355f2ca33c06p-15, 0x1.d4d036cde3f0cp-17, -0x1.7684a91c5f0fap-18, 0x1.297454825e543p-19,
      -0x1.d63c1837175d2p-21, 0x1.722ddeda93699p-22, -0x1.224ca36f7feb5p-23, 0x1.c625a6c679041p-25,
      -0x1.641f8fda5ef1ep-26, 0x1.1534d1767e4aap-27, -0x1.9af888c560c18p-29, 0x1.3edf1aae3192bp-30,
      -0x1.40267bcb1d8e9p-31, 0x1.ee76864dd2ea2p-33, -0x1.fe6b33d1e664cp-38, 0x1.993f1ca2ca58fp-39,
      -0x1.faac98173d3edp-36, 0x1.8586325a22af2p-37};
  // 20 <= s <= 39; error 2^-55.2
  static constexpr double kTailFarthest[] = {
      0x1.fd76d2d19e2f4p-1,   0x1.72180abd96bb2p-9,  -0x1.46d500332d316p-10, 0x1.0508696a092b1p-11,
      -0x1.8b35a573ad55ap-13, 0x1.216a293ecd0d7p-14, -0x1.9e737a897a0e6p-16, 0x1.23fac1bf7e604p-17,
      -0x1.9666691fcacb5p-19, 0x1.18261e6c91377p-20, -0x1.7f4e399aa50eap-22, 0x1.049862ad24d1ap-23,
      -0x1.60800b0ad0aa4p-25, 0x1.dabf8364d1c8ep-27, -0x1.3ea56d97d0114p-28, 0x1.aa2c1bf3fcc8ap-30,
      -0x1.1a637f73452fap-31, 0x1.77b8baaf8f71ap-33, -0x1.087ad3bd9029bp-34, 0x1.5e3dd4385ac2ap-36,
      -0x1.2f0aae19ff314p-38, 0x1.913ede313e08cp-40, -0x1.7860c280c0906p-40, 0x1.eee94a53480ffp-42};
};

/// A polynomial over [low, high]; 0 if no lane is `used`, which saves the time.
template <class D, int K>
AE_INLINE D over_range(mask_of<D> used, D x, double low, double high, const double (&c)[K]) {
  if (!any(used)) return D(0.0);
  return horner(D((x - D((low + high) / 2)) * D(2 / (high - low))), c);
}

template <class D>
AE_INLINE D erfinv_of_double(D x) {
  using C = ErfInvConstants;
  const D magnitude = abs(x);
  const D w = D(0.0) - log(D((D(1.0) - magnitude) * (D(1.0) + magnitude)));
  const D root = sqrt(w);
  const mask_of<D> near = w < D(5.0), far = mask_not(root < D(3.75));
  const D outer =
      select(far, over_range(far, root, 3.75, 6.25, C::kFar), over_range(mask_not(near), root, 2.23, 3.75, C::kMiddle));
  const D result = x * select(near, over_range(near, w, 0, 5, C::kNear), outer);
  return select(magnitude == D(1.0), D(xor_sign(D(kInf<double>), x)), result);
}

template <class V>
AE_INLINE V erfinv(V number) {
  using D = rebind<V, double>;
  return convert<scalar_of<V>>(D(erfinv_of_double(D(convert<double>(number)))));
}

/// -ndtri(q) for the smaller tail q.
template <class D>
AE_INLINE D tail_quantile(D q) {
  using C = ErfInvConstants;
  const D s = sqrt(D(D(-2.0) * log(q)));
  const mask_of<D> below_4 = s < D(4.0), below_9 = s < D(9.0), below_20 = s < D(20.0);
  const D near = select(below_4, over_range(below_4, s, 2, 4, C::kTailNear),
                        over_range(mask_not(below_4), s, 4, 9, C::kTailMiddle));
  const D far = select(below_20, over_range(mask_not(below_9), s, 9, 20, C::kTailFar),
                       over_range(mask_not(below_20), s, 20, 39, C::kTailFarthest));
  return select(q == D(0.0), D(kInf<double>), D(s * select(below_9, near, far)));
}

template <class V>
AE_INLINE V ndtri(V number) {
  using D = rebind<V, double>;
  const D p = convert<double>(number);
  const D q = select(p > D(0.5), D(D(1.0) - p), p);
  const D middle = D(0x1.6a09e667f3bcdp+0) * erfinv_of_double(D(p + p - D(1.0)));
  const mask_of<D> is_middle = q > D(0.125);
  const D tail = all(is_middle) ? D(0.0) : tail_quantile(q);
  const D outer = select(p > D(0.5), tail, D(D(0.0) - tail));
  return convert<scalar_of<V>>(D(select(is_middle, middle, outer)));
}

}  // namespace ae::math
