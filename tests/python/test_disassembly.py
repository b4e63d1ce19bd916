"""No multiplication and addition of ours is contracted into one rounding, seen in the machine code.

Functions that ask for a fused multiply-add by name (`fma`) have it; all others must not. So loops that a contracting
compiler would fuse are compiled with the very flags of every file that computes, and the tile machine's own kernels for
sums and products are looked at in the library.
"""

from __future__ import annotations

import json
import pathlib
import re
import shlex
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "build"
FUSED = re.compile(r"\bvf(?:n)?m(?:add|sub|addsub|subadd)\d*[ps][sdh]\b")

# Every form in which contraction has been seen: scalars, loops, vector types, intrinsics.
PROBE = """
#include <immintrin.h>
typedef float Vec __attribute__((vector_size(32)));
float scalar(float a, float b, float c) { return a * b + c; }
double scalar_double(double a, double b, double c) { return a * b - c; }
void loop(float* x, const float* y, const float* z, int n) { for (int i = 0; i < n; ++i) x[i] = x[i] * y[i] + z[i]; }
void lanes(Vec* x, Vec y, Vec z) { *x = *x * y + z; }
#ifdef __AVX__
__m256 intrinsics(__m256 a, __m256 b, __m256 c) { return _mm256_add_ps(_mm256_mul_ps(a, b), c); }
#endif
"""

pytestmark = pytest.mark.skipif(
    "fma" not in pathlib.Path("/proc/cpuinfo").read_text(), reason="this machine has no fused multiply-add"
)


def commands() -> list[dict[str, str]]:
    """The compiler's command for every file of ours that can compute."""
    found = json.loads((BUILD / "compile_commands.json").read_text())
    return [
        entry
        for entry in found
        if re.match(r"(device|fusion|engine)/", str(pathlib.Path(entry["file"]).relative_to(ROOT)))
    ]


def flags_of(entry: dict[str, str]) -> tuple[str, ...]:
    """The flags that decide over code generation, in their order."""
    words = shlex.split(entry["command"])
    return tuple(word for word in words if re.match(r"-(O|m|f(?!pch|visibility)|std=)", word))


def disassemble(file: pathlib.Path) -> dict[str, list[str]]:
    """The instructions of each function in an object or library."""
    text = subprocess.run(
        ["objdump", "-d", "--no-show-raw-insn", "-C", str(file)], capture_output=True, text=True, check=True
    ).stdout
    functions: dict[str, list[str]] = {}
    current: list[str] = []
    for line in text.splitlines():
        head = re.match(r"[0-9a-f]+ <(.*)>:$", line)
        if head:
            current = functions.setdefault(head[1], [])
        elif "\t" in line:
            current.append(line.split("\t", 1)[1])
    return functions


def fused(functions: dict[str, list[str]]) -> dict[str, str]:
    """The functions with a fused multiply-add, and the first one."""
    return {name: code for name, codes in functions.items() for code in codes if FUSED.search(code)}


def compile_probe(folder: pathlib.Path, flags: tuple[str, ...]) -> dict[str, list[str]]:
    source, target = folder / "probe.cpp", folder / "probe.o"
    source.write_text(PROBE)
    subprocess.run(["g++", *flags, "-c", str(source), "-o", str(target)], check=True)
    return disassemble(target)


def test_the_probe_is_contracted_where_the_compiler_may(tmp_path: pathlib.Path) -> None:
    found = fused(compile_probe(tmp_path, ("-std=gnu++20", "-O3", "-march=native", "-ffp-contract=fast")))
    names = {name.split("(")[0] for name in found}
    assert names >= {"scalar", "scalar_double", "loop", "lanes"}, names


def test_the_flags_of_every_file_forbid_contraction(tmp_path: pathlib.Path) -> None:
    entries = commands()
    assert any("/device/host/" in entry["file"] for entry in entries)
    for flags in sorted({flags_of(entry) for entry in entries}):
        assert not [
            flag for flag in flags if re.search(r"fast-math|Ofast|unsafe-math|associative|reciprocal-math", flag)
        ], flags
        folder = tmp_path / str(abs(hash(flags)))
        folder.mkdir()
        assert fused(compile_probe(folder, flags)) == {}, flags


def library() -> dict[str, list[str]]:
    path = BUILD / "libae_device.a"
    if not path.exists():
        pytest.skip("the device library is not built")
    return disassemble(path)


@pytest.mark.skipif(shutil.which("objdump") is None, reason="there is no objdump")
def test_fused_multiply_adds_are_in_functions_that_ask_for_them_only() -> None:
    functions = library()
    found = fused(functions)
    assert found, "the mathematical functions use explicit fused multiply-adds: none seen, so the test looks at nothing"
    # Kernels with one IEEE operation each; what they compute is in their names.
    plain = re.compile(r"\bFloat(Add|Sub|Mul|Div)\b|Reduce<[^,]*(Sum|Prod|Max|Min)\b")
    assert {name: code for name, code in found.items() if plain.search(name)} == {}
    assert [name for name in functions if plain.search(name)], "no kernel of a sum or product was seen"
