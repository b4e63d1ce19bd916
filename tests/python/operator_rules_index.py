"""Rules of `operator_rules` for indexing, scattering, sorting, searching and drawing of random numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from operator_rules import FLOATS, Arguments, Rule, base_of, dims_of, generic, rule_dtypes

if TYPE_CHECKING:
    from programs import Generator

__all__ = ["index_rules"]


def scattered(g: Generator, rule: Rule, schema: Any) -> Arguments:
    """Draw scatter in its forms, scatter_reduce and index_reduce."""
    names = [argument.name for argument in schema.arguments]
    dtype, shape = g.choice(rule_dtypes(rule)), g.shape(rank=(1, 3), least=1)
    dim = g.integer(0, len(shape) - 1)
    self = g.fresh(shape, dtype)
    given = {"self": self, "dim": str(dim)}
    if "source" in names:
        count = g.integer(1, 4)
        given["index"] = g.index((count,), shape[dim])
        given["source"] = g.fresh((*shape[:dim], count, *shape[dim + 1 :]), dtype)
    else:
        part = tuple(g.integer(1, n) for n in shape)
        given["index"] = g.index(part, shape[dim])
        given |= {"src": g.fresh(part, dtype)} if "src" in names else {"value": g.number(self, finite=True)}
    if "reduce" in names:
        forms = {"scatter": ("add", "multiply"), "index_reduce": ("prod", "mean", "amax", "amin")}
        given["reduce"] = repr(g.choice(forms.get(base_of(schema.name), ("sum", "prod", "mean", "amax", "amin"))))
    return generic(g, rule, schema, given, like=self)


def flat(g: Generator, rule: Rule, schema: Any) -> Arguments:
    """Draw take and put, whose index counts in the flattened tensor, from its end too."""
    dtype, shape, count = g.choice(rule_dtypes(rule)), g.shape(rank=(1, 3), least=1), g.integer(1, 4)
    self = g.fresh(shape, dtype)
    size = g.value(self).numel()
    index = g.line(f"{g.index((count,), 2 * size)} - {size}")
    given = {"self": self, "index": index}
    return given if base_of(schema.name) == "take" else given | {"source": g.fresh((count,), dtype)}


def masked(g: Generator, rule: Rule, schema: Any) -> Arguments:
    """Draw masked_select and masked_scatter, whose source is large enough."""
    shape, dtype = g.shape(rank=(1, 3), least=1), g.choice(rule_dtypes(rule))
    if base_of(schema.name) == "masked_scatter_backward":
        return {"grad_output": g.fresh(shape, dtype), "mask": g.fresh(shape, torch.bool), "sizes": str(list(shape))}
    mask = g.fresh(shape[g.integer(0, len(shape) - 1) :], torch.bool)
    given = {"self": g.fresh(shape, dtype), "mask": mask}
    return given | ({"source": g.fresh(shape, dtype)} if "source" in str(schema) else {})


def ranking(g: Generator, rule: Rule, schema: Any) -> Arguments:
    """Draw a tensor to be ranked along one of its dimensions."""
    self = g.fresh(g.shape(rank=(1, 3), least=1), g.choice(rule_dtypes(rule)))
    given = {"self": self}
    names = [argument.name for argument in schema.arguments]
    if "dim" in names:
        given["dim"] = dims_of(g, self, False)
    if "k" in names:
        size = g.value(self).shape[int(given["dim"])]
        given["k"] = str(g.integer(1, size))
    if "stable" in names:
        given["stable"] = "True"  # ties are broken one way only
    if "values" in names:
        given["values"] = g.line(f"torch.empty(0, dtype={g.dtype_of(self)}, device=device)")
        given["indices"] = g.line("torch.empty(0, dtype=torch.int64, device=device)")
    return generic(g, rule, schema, given, like=self)


def whole(g: Generator, rule: Rule, schema: Any) -> Arguments:
    """Draw a tensor and what the unique family, nonzero and bincount take besides."""
    base, dtype = base_of(schema.name), g.choice(rule_dtypes(rule))
    shape = g.shape(rank=(1, 1) if base == "bincount" else (1, 3), least=1)
    self = f"{g.fresh(shape, dtype)}.abs()" if base == "bincount" else g.fresh(shape, dtype)
    given = {"self": g.line(self)}
    for argument in schema.arguments:
        if argument.name == "dim":
            given["dim"] = str(g.integer(0, len(shape) - 1))
        elif argument.name == "sorted":
            given["sorted"] = "True"
        elif argument.name == "size":
            given["size"] = str(g.integer(0, 5))
        elif argument.name == "minlength":
            given["minlength"] = str(g.integer(0, 9))
        elif argument.name == "weights":
            given["weights"] = g.fresh(shape, torch.float64) if g.chance(0.4) else "None"
    return generic(g, rule, schema, given, like=given["self"])


def searched(g: Generator, rule: Rule, schema: Any) -> Arguments:
    """Draw searchsorted, bucketize, isin and histc."""
    dtype = g.choice(rule_dtypes(rule))
    kinds = {argument.name: str(argument.type) for argument in schema.arguments}
    given: Arguments = {}
    for name in ("sorted_sequence", "boundaries"):
        if name in kinds:
            given[name] = g.line(f"{g.fresh((g.integer(1, 7),), dtype)}.sort()[0]")
    for name in ("self", "elements", "test_elements", "element", "test_element"):
        if name in kinds:
            given[name] = g.fresh(g.shape(), dtype) if kinds[name] == "Tensor" else g.choice(("1", "2"))
    if "bins" in kinds:
        given |= {"bins": str(g.integer(1, 8)), "min": g.choice(("0", "-2")), "max": g.choice(("0", "3"))}
        given["max"] = "3" if given["min"] == "-2" else given["max"]
    if "side" in kinds:
        given |= {"side": "None", "sorter": "None"}
    return generic(g, rule, schema, given)


def bags(g: Generator, rule: Rule, schema: Any) -> Arguments:
    """Draw bags of rows; a backward gets what the forward made."""
    rows, width, count, dtype = g.integer(1, 6), g.integer(1, 5), g.integer(1, 6), g.choice(FLOATS[:2])
    kind, mode = g.choice((torch.int64, torch.int32)), g.integer(0, 2)
    weight = g.fresh((rows, width), dtype)
    indices = g.line(f"make({(count,)}, {kind}, {g.seed()}, 'index', {rows})")
    offsets = g.line(f"torch.tensor([0, {g.integer(0, count)}], dtype={kind}, device=device)")
    padding = g.choice(("-1", "0"))
    if "per_sample_weights_backward" in schema.name:
        mode = 0
    scales = g.fresh((count,), dtype) if mode == 0 and g.chance(0.5) else "None"
    given = {
        "weight": weight, "indices": indices, "offsets": offsets, "scale_grad_by_freq": "False", "mode": str(mode),
        "sparse": "False", "per_sample_weights": scales, "include_last_offset": "False", "padding_idx": padding,
    }  # fmt: skip
    if "backward" not in schema.name:
        return given
    # With a row that counts for nothing ATen always notes each index's bag, which the dense backward needs.
    given["padding_idx"] = padding = "0"
    call = f"{weight}, {indices}, {offsets}, False, {mode}, False, {scales}, False, {padding}"
    _, bag_of, sizes, most = g.line(f"aten._embedding_bag.default({call})", "loose").split(", ")
    given |= {"grad": g.fresh((2, width), dtype), "offset2bag": bag_of, "bag_size": sizes, "maximum_indices": most,
              "num_weights": str(rows)}  # fmt: skip
    wanted = [argument.name for argument in schema.arguments]
    return {name: text for name, text in given.items() if name in wanted}


def windows(g: Generator, rule: Rule, schema: Any) -> Arguments:
    """Draw the gradient of windows that `unfold` made."""
    rows, count, dtype = g.integer(1, 4), g.integer(1, 4), g.choice(FLOATS)
    size, step = g.integer(1, 3), g.integer(1, 3)
    return {"grad_in": g.fresh((rows, count, size), dtype), "input_sizes": str([rows, (count - 1) * step + size]),
            "dim": "1", "size": str(size), "step": str(step)}  # fmt: skip


def repeats(g: Generator, rule: Rule, schema: Any) -> Arguments:
    """Draw how often each position is repeated."""
    counts = g.line(f"make({(g.integer(1, 5),)}, torch.int64, {g.seed()}, 'index', 4)")
    total = int(g.value(counts).sum())
    return {"repeats": counts, "output_size": g.choice(("None", str(total)))}


def drawn(g: Generator, rule: Rule, schema: Any) -> Arguments:
    """Draw what random numbers are drawn from."""
    base, dtype = base_of(schema.name), g.choice((torch.float32, torch.float64))
    if base == "randperm":
        return {"n": str(g.integer(0, 20)), "generator": "None"}
    shape = g.shape(rank=(1, 2), least=1)
    if base == "multinomial":
        return {"self": g.fresh(shape, dtype, "positive"), "num_samples": "1", "replacement": str(g.chance(0.5))}
    given: Arguments = {}
    for argument in schema.arguments:
        if str(argument.type) == "Tensor" and not argument.is_out:
            style = "unit" if argument.name == "prob" else "positive"
            given[argument.name] = g.fresh(shape, dtype, style)
        elif argument.name in ("mean", "std"):
            given[argument.name] = "0.5"
    if base == "binomial":
        given["count"] = g.line(f"{given['count']}.ceil()")
    return given


def filled_at_random(g: Generator, rule: Rule, schema: Any) -> Arguments:
    """Draw a tensor to be filled with numbers of a distribution."""
    numbers = {"p": "0.3", "mean": "0.5", "std": "0.7", "median": "1.0", "sigma": "2.0"}
    names = [argument.name for argument in schema.arguments]
    return {"self": g.tensor(rule.kinds)} | {name: text for name, text in numbers.items() if name in names}


def normal(g: Generator, rule: Rule, schema: Any) -> Arguments:
    """Draw normal numbers: a fill, or means and deviations of which one at least is a tensor."""
    return (filled_at_random if "self" in str(schema) else drawn)(g, rule, schema)


def index_rules() -> dict[str, Rule]:
    """Return the rules by operator."""
    rules: dict[str, Rule] = {}

    def put(names: str, rule: Rule) -> None:
        for name in names.split():
            rules[name] = rule

    put("scatter", Rule("fi", scattered, slack="most"))
    put("scatter_reduce index_reduce", Rule("fi", scattered, compare="wide"))
    put("take", Rule("fib", flat, compare="exact"))
    put("put", Rule("fi", flat, slack="sum"))
    put("masked_select masked_scatter masked_scatter_backward", Rule("fi", masked, compare="exact"))
    put("sort topk kthvalue median nanmedian mode", Rule("fi", ranking, compare="exact"))
    put("nonzero nonzero_static _unique _unique2 unique_dim unique_consecutive unique_dim_consecutive",
        Rule("fib", whole, compare="exact"))  # fmt: skip
    put("bincount", Rule("i", whole, slack="sum"))
    put("searchsorted bucketize isin", Rule("fi", searched, compare="exact"))
    put("histc", Rule("f", searched, compare="exact"))
    put("_embedding_bag _embedding_bag_forward_only _embedding_bag_backward _embedding_bag_dense_backward "
        "_embedding_bag_per_sample_weights_backward", Rule("f", bags, slack="sum"))  # fmt: skip
    put("unfold_backward", Rule("f", windows, slack="sum"))
    put("repeat_interleave", Rule("i", repeats, compare="exact"))
    put("randperm multinomial poisson binomial _standard_gamma _sample_dirichlet", Rule("f", drawn, compare="loose"))
    put("geometric", Rule("fi", filled_at_random, compare="loose"))
    put("normal", Rule("f", normal, compare="loose"))
    put("log_normal cauchy", Rule("f", filled_at_random, compare="loose"))
    return rules
