"""Rules of `operator_rules` for images (pooling, interpolation, padding), Fourier transforms and linear algebra."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from operator_rules import FLOATS, Arguments, Rule, base_of

if TYPE_CHECKING:
    from programs import Generator

__all__ = ["spatial_rules"]

WIDE = (torch.float32, torch.float64)
MODES = ("True", "False")
UPSAMPLES = """
    upsample_nearest1d upsample_nearest2d upsample_nearest3d _upsample_nearest_exact1d _upsample_nearest_exact2d
    _upsample_nearest_exact3d upsample_linear1d upsample_bilinear2d upsample_bicubic2d upsample_trilinear3d
    _upsample_bilinear2d_aa _upsample_bicubic2d_aa
"""


def dims_in(schema: Any) -> int:
    """Return the digit in an operator's name."""
    return next(int(letter) for letter in base_of(schema.name) if letter.isdigit())


def image(g: Generator, dims: int, dtype: torch.dtype, batched: bool | None = None, least: int = 3) -> str:
    """Make a batch of images, or one; channels are last now and then."""
    batch = (g.integer(1, 3),) if g.chance(0.7) or batched else ()
    x = g.fresh((*batch, g.integer(1, 3), *(g.integer(least, 6) for _ in range(dims))), dtype, "normal")
    if batch and dims > 1 and g.chance(0.3):
        x = g.line(f"{x}.contiguous(memory_format=torch.channels_last{'_3d' if dims == 3 else ''})")
    return x


def numbers(g: Generator, count: int, low: int, high: int) -> str:
    """Draw a list of integers."""
    return str([g.integer(low, high) for _ in range(count)])


def like_result(g: Generator, call: str, dtype: torch.dtype) -> str:
    """Make a gradient for a call's result."""
    return g.fresh(tuple(g.value(g.line(call, "loose")).shape), dtype)


def windows(g: Generator, rule: Rule, schema: Any) -> Arguments:
    """Draw pooling over windows, and its backward with the forward's own indices."""
    dims, dtype, name = dims_in(schema), g.choice(FLOATS), base_of(schema.name)
    self = image(g, dims, dtype)
    kernel, stride = numbers(g, dims, 1, 3), numbers(g, dims, 1, 2)
    given = {"self": self, "kernel_size": kernel, "stride": stride, "ceil_mode": g.choice(MODES)}
    given["padding"] = str([k // 2 if g.chance(0.5) else 0 for k in eval(kernel)])
    order = ["self", "kernel_size", "stride", "padding"]
    if name.startswith("max"):
        given["dilation"] = str([1] * dims)
        order += ["dilation", "ceil_mode"]
    else:
        given |= {"count_include_pad": g.choice(MODES), "divisor_override": g.choice(("None", "3"))}
        order += ["ceil_mode", "count_include_pad", "divisor_override"]
    if "backward" in name:
        call = f"aten.{name.removesuffix('_backward')}.default({', '.join(given[key] for key in order)})"
        out, *indices = g.line(call, "loose").split(", ")
        given["grad_output"] = g.fresh(tuple(g.value(out).shape), dtype)
        given |= {"indices": indices[0]} if indices else {}
    return given


def adaptive(g: Generator, rule: Rule, schema: Any) -> Arguments:
    """Draw adaptive pooling and its backward."""
    dims, dtype, name = dims_in(schema), g.choice(FLOATS), base_of(schema.name)
    self, size = image(g, dims, dtype), numbers(g, dims, 1, 4)
    if "backward" not in name:
        return {"self": self, "output_size": size}
    out, *indices = g.line(f"aten.{name.removesuffix('_backward')}.default({self}, {size})", "loose").split(", ")
    given = {"grad_output": g.fresh(tuple(g.value(out).shape), dtype), "self": self}
    return given | ({"indices": indices[0]} if indices else {})


def upsample(g: Generator, rule: Rule, schema: Any) -> Arguments:
    """Draw interpolation and its backward."""
    names = [argument.name for argument in schema.arguments]
    dims, dtype = dims_in(schema), g.choice(WIDE if "_aa" in schema.name else FLOATS)
    self = image(g, dims, dtype, batched=True)
    size = [g.integer(1, 9) for _ in range(dims)]
    given = {"self": self, "output_size": str(size), "align_corners": g.choice(MODES)}
    given |= {name: "None" for name in names if name.startswith("scales")}
    if "backward" in schema.name:
        shape = tuple(g.value(self).shape)
        given |= {"input_size": str(list(shape)), "grad_output": g.fresh((*shape[:2], *size), dtype)}
    return {name: text for name, text in given.items() if name in names}


def grid(g: Generator, rule: Rule, schema: Any) -> Arguments:
    """Draw sampling on a grid and its backward."""
    dims, dtype = dims_in(schema), g.choice(WIDE)
    self = image(g, dims, dtype, batched=True)
    shape, size = g.value(self).shape, tuple(g.integer(1, 5) for _ in range(dims))
    given = {"input": self, "grid": g.fresh((shape[0], *size, dims), dtype, "normal")}
    given |= {"interpolation_mode": numbers(g, 1, 0, 2 if dims == 2 else 1)[1:-1], "padding_mode": str(g.integer(0, 2))}
    given["align_corners"] = g.choice(MODES)
    if "backward" in schema.name:
        given["grad_output"] = g.fresh((*shape[:2], *size), dtype)
        given["output_mask"] = g.choice(("[True, True]", "[False, True]"))
    return given


def columns(g: Generator, rule: Rule, schema: Any) -> Arguments:
    """Draw an image to its columns, or back."""
    dtype, kernel = g.choice(FLOATS), [g.integer(1, 3), g.integer(1, 3)]
    self = image(g, 2, dtype)
    given = {"self": self, "kernel_size": str(kernel), "dilation": "[1, 1]", "padding": numbers(g, 2, 0, 1)}
    given["stride"] = numbers(g, 2, 1, 2)
    if base_of(schema.name) == "im2col":
        return given
    shape = g.value(self).shape
    unfolded = f"aten.im2col.default({', '.join(given.values())})"
    return given | {"self": like_result(g, unfolded, dtype), "output_size": str(list(shape[-2:]))}


def pads(g: Generator, rule: Rule, schema: Any) -> Arguments:
    """Draw padding and its backward."""
    dims, dtype, name = dims_in(schema), g.choice(FLOATS), base_of(schema.name)
    self, padding = image(g, dims, dtype), numbers(g, 2 * dims, 0, 2)
    if "backward" not in name:
        return {"self": self, "padding": padding}
    grad = like_result(g, f"aten.{name.removesuffix('_backward')}.default({self}, {padding})", dtype)
    return {"grad_output": grad, "self": self, "padding": padding}


def fourier(kind: str) -> Rule:
    """Make the rule of a Fourier transform: complex tensors are seen as pairs of numbers."""

    def write(g: Generator, rule: Rule, schema: Any) -> str:
        dtype, shape = g.choice(WIDE), g.shape(rank=(1, 3), least=2)
        dims = [d for d in range(len(shape)) if g.chance(0.6)] or [len(shape) - 1]
        real, norm = g.fresh(shape, dtype, "normal"), g.integer(0, 2)
        pair = f"torch.complex({real}, {g.fresh(shape, dtype, 'normal')})"
        call = {
            "c2c": f"torch.view_as_real(aten._fft_c2c.default({pair}, {dims}, {norm}, {g.chance(0.5)}))",
            "r2c": f"torch.view_as_real(aten._fft_r2c.default({real}, {dims}, {norm}, {g.chance(0.5)}))",
            "c2r": f"aten._fft_c2r.default({pair}, {dims}, {norm}, {2 * shape[dims[-1]] - 2 or 1})",
        }[kind]
        return g.line(call, "close", slack=1e-4)

    return Rule("f", replacement=write)


def complex_numbers(call: str) -> Rule:
    """Make the rule of an operator that takes two real tensors, or makes of them what it takes."""

    def write(g: Generator, rule: Rule, schema: Any) -> str:
        dtype, shape = g.choice(WIDE), g.shape(rank=(0, 3))
        parts = [g.fresh(shape, dtype, "normal") for _ in range(2)]
        return g.line(f"torch.view_as_real({call.format(*parts)})", "close", slack=1e-5)

    return Rule("f", replacement=write)


def matrix(g: Generator, batch: tuple[int, ...], n: int, dtype: torch.dtype, symmetric: bool = False) -> str:
    """Make square matrices that are far from singular."""
    a = g.fresh((*batch, n, n), dtype, "normal")
    a = f"({a} + {a}.mT)" if symmetric else a
    return g.line(f"{a} * 0.1 + torch.eye({n}, dtype={dtype}, device=device) * 3")


def algebra(g: Generator, rule: Rule, schema: Any) -> Arguments:
    """Draw factorizations, determinants and solvers."""
    name, dtype, n = base_of(schema.name), g.choice(WIDE), g.integer(1, 5)
    batch = (g.integer(1, 3),) if g.chance(0.5) else ()
    symmetric = name in ("linalg_cholesky_ex", "_linalg_eigh")
    a = matrix(g, batch, n, dtype, symmetric)
    if name in ("linalg_qr", "_linalg_svd") and g.chance(0.5):
        a = g.fresh((*batch, g.integer(1, 5), n), dtype, "normal")
    given = {schema.arguments[0].name: a, "check_errors": "False", "driver": "None", "UPLO": g.choice(("'L'", "'U'")),
             "mode": g.choice(("'reduced'", "'complete'", "'r'"))}  # fmt: skip
    left = g.chance(0.7)
    sides = g.fresh((*batch, *((n, 2) if left else (2, n))), dtype, "normal")
    factor = g.line(f"{a}.tril()")
    right = g.fresh((*batch, n, 2), dtype, "normal")
    given |= {
        "_linalg_solve_ex": {"B": sides, "left": str(left)},
        "linalg_lu_solve": {"B": sides, "left": str(left), "adjoint": str(g.chance(0.3))},
        "linalg_solve_triangular": {"self": factor, "B": sides, "left": str(left), "upper": "False"},
        "triangular_solve": {"self": right, "A": factor, "upper": "False"},
        "cholesky_inverse": {"self": factor, "upper": "False"},
        "_cholesky_solve_helper": {"self": right, "A": factor, "upper": "False"},
    }.get(name, {})
    if name in ("linalg_lu_solve", "lu_unpack"):
        factors, pivots, _ = g.line(f"aten.linalg_lu_factor_ex.default({a})", "loose").split(", ")
        given |= {"LU": factors, "pivots": pivots, "LU_data": factors, "LU_pivots": pivots}
    names = [argument.name for argument in schema.arguments if not argument.is_out]
    for argument in schema.arguments:
        if str(argument.type) == "bool":
            given.setdefault(argument.name, str(g.chance(0.5)))
    return {key: given[key] for key in names}


def cross(g: Generator, rule: Rule, schema: Any) -> Arguments:
    """Draw vectors of three numbers."""
    dtype, shape = g.choice(FLOATS), (g.integer(1, 4), 3, g.integer(1, 4))
    return {"self": g.fresh(shape, dtype), "other": g.fresh(shape, dtype), "dim": "1"}


def distances(g: Generator, rule: Rule, schema: Any) -> Arguments:
    """Draw two sets of points, and the backward with the forward's own distances."""
    dtype, batch, width = g.choice(WIDE), (g.integer(1, 3),) if g.chance(0.5) else (), g.integer(1, 4)
    x1, x2 = (g.fresh((*batch, g.integer(1, 6), width), dtype, "normal") for _ in range(2))
    given = {"x1": x1, "x2": x2, "p": g.choice(("2.0", "1.0", "3.0", "float('inf')")), "compute_mode": "None"}
    if "backward" in schema.name:
        given["cdist"] = g.line(f"aten._cdist_forward.default({', '.join(given.values())})", "loose")
        del given["compute_mode"]
        given["grad"] = g.fresh(tuple(g.value(given["cdist"]).shape), dtype)
    return given


def spatial_rules() -> dict[str, Rule]:
    """Return the rules by the operators' names."""
    rules: dict[str, Rule] = {}

    def put(names: str, rule: Rule) -> None:
        rules.update(dict.fromkeys(names.split(), rule))

    for dims in (2, 3):
        put(f"max_pool{dims}d_with_indices max_pool{dims}d_with_indices_backward avg_pool{dims}d "
            f"avg_pool{dims}d_backward", Rule("f", windows, slack="most"))  # fmt: skip
        put(f"adaptive_max_pool{dims}d adaptive_max_pool{dims}d_backward _adaptive_avg_pool{dims}d "
            f"_adaptive_avg_pool{dims}d_backward", Rule("f", adaptive, slack="most"))  # fmt: skip
        put(f"grid_sampler_{dims}d grid_sampler_{dims}d_backward", Rule("f", grid, slack="sum"))
    for kind in UPSAMPLES.split():
        put(f"{kind} {kind}_backward", Rule("f", upsample, slack="sum"))
    for kind in ("reflection", "replication"):
        for dims in (1, 2, 3):
            put(f"{kind}_pad{dims}d {kind}_pad{dims}d_backward", Rule("f", pads, slack="most"))
    put("im2col col2im", Rule("f", columns, slack="most"))
    for kind in ("c2c", "r2c", "c2r"):
        put(f"_fft_{kind}", fourier(kind))
    put("complex", complex_numbers("torch.complex({}, {})"))
    put("polar", complex_numbers("torch.polar({}.abs(), {})"))
    put("conj_physical", complex_numbers("torch.conj_physical(torch.complex({}, {}))"))
    put("linalg_cholesky_ex linalg_inv_ex _linalg_solve_ex linalg_lu_factor_ex linalg_lu linalg_lu_solve lu_unpack "
        "linalg_qr _linalg_eigh _linalg_svd _linalg_det _linalg_slogdet triangular_solve linalg_solve_triangular "
        "cholesky_inverse _cholesky_solve_helper", Rule("f", algebra, slack="square"))  # fmt: skip
    put("linalg_cross", Rule("f", cross, slack="square"))
    put("_cdist_forward _cdist_backward", Rule("f", distances, slack="square"))
    return rules
