"""Writes invented reports as NDJSON: `python bench/generate.py 1000000 > relatorios.ndjson`."""

import argparse
import sys

from laudo import demo


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", type=int, help="how many reports")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--persons", type=int, help="how many distinct CPFs (default: 0.3 × count)")
    arguments = parser.parse_args()
    relatorios = demo.relatorios(arguments.count, seed=arguments.seed, persons=arguments.persons)
    sys.stdout.buffer.writelines(demo.ndjson_lines(relatorios))


if __name__ == "__main__":
    main()
