# SPDX-License-Identifier: Apache-2.0
"""Write a synthetic campaign with known truth: PYTHONPATH=scripts/bench python -m netjoule_synthetic OUT

Examples:
    python -m netjoule_synthetic /tmp/small --blocks 8 --truth /tmp/truth.csv
    python -m netjoule_synthetic /tmp/whole --shape table-i
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from netjoule.core.errors import NetjouleError
from netjoule.workload.workload import Timing
from netjoule_synthetic.campaign import write, write_truth
from netjoule_synthetic.design import table_i, tiny

_SHAPES = {"tiny": tiny, "table-i": table_i}


def main(arguments: list[str] | None = None) -> int:
    """Write what the command line asks for; exit code 0, or 2 when it cannot be."""
    told = {name: value for name, value in vars(_options(arguments)).items() if value is not None}
    out, shape, truth = told.pop("out"), told.pop("shape"), told.pop("truth", None)
    try:
        if "timing" in told:
            told["timing"] = Timing(*told["timing"])
        design = _SHAPES[shape](**told)
        write(out, design)
    except (ValueError, TypeError, NetjouleError) as error:
        print(f"netjoule_synthetic: {error}", file=sys.stderr)
        return 2
    if truth is not None:
        write_truth(truth, design)
    print(f"{design.runs} runs in {out}")
    return 0


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="netjoule_synthetic", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("out", type=Path, help="folder of the campaign, new or empty")
    parser.add_argument("--shape", choices=sorted(_SHAPES), default="tiny", help="what is not told otherwise")
    parser.add_argument("--truth", type=Path, help="also write the truth of every cell as CSV")
    parser.add_argument("--transports", type=_list(str), help="e.g. udp,quic,null")
    parser.add_argument("--payload-bytes", type=_list(int), help="e.g. 64,1440")
    parser.add_argument("--offered-rate-mbps", type=_list(float), help="e.g. 1,10,30")
    parser.add_argument("--blocks", type=int)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--timing", type=_list(float), help="idle,settle,warm-up,measure,tail in s")
    parser.add_argument("--reading-sd-w", type=float, help="noise of a reading, W")
    parser.add_argument("--block-sd-ratio", type=float, help="what a block's power is off by, as a ratio")
    parser.add_argument("--invalid-share", type=float, help="share of mini-blocks that have to be repeated")
    parser.add_argument("--device-stream", action="store_true", help="write the stream of a device model too")
    return parser.parse_args(arguments)


def _list(kind: type) -> Any:
    return lambda text: tuple(kind(part) for part in text.split(","))


if __name__ == "__main__":
    sys.exit(main())
