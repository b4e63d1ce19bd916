"""Random programs from the command line: drawn, run in every mode, compared, and made short when they differ.

python tests/python/programs.py --programs 20000 --seed 1     look for differences for long
python tests/python/programs.py --check FILE                  run one program again and compare
python tests/python/programs.py --digest FILE                 print the results' digests (JSON in, JSON out)
"""

from __future__ import annotations

import argparse
import json
import pathlib
import random
import sys

from program_generator import draw_for, draw_program
from program_runner import check_and_explain, digest, parse, registered


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--programs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--length", type=int, default=20)
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--operator", help="draw programs for one operator only")
    parser.add_argument("--check", metavar="FILE")
    parser.add_argument("--digest", metavar="FILE")
    arguments = parser.parse_args()
    if arguments.check:
        check_and_explain(parse(pathlib.Path(arguments.check).read_text()))
        print("no difference")
        return 0
    if arguments.digest:
        texts = json.loads(pathlib.Path(arguments.digest).read_text())
        print(json.dumps([digest(parse(text)) for text in texts]))
        return 0
    names, failures = registered(), 0
    for i in range(arguments.programs):
        source = random.Random(f"{arguments.seed}/{i}")
        g = (
            draw_for(arguments.operator, source)
            if arguments.operator
            else draw_program(source, names, arguments.length, arguments.large)
        )
        try:
            check_and_explain(g.program)
        except AssertionError as error:
            failures += 1
            print(f"--- seed {arguments.seed}, program {i}\n{error}\n", flush=True)
        if i % 100 == 99:
            print(f"{i + 1} programs, {failures} differences", file=sys.stderr, flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
