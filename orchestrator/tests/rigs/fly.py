# SPDX-License-Identifier: Apache-2.0
"""A campaign of fake blocks over rigs of Dask, begun or gone on with, in a process that may be killed.

Usage: fly.py FOLDER BLOCKS RIGS WORKER_TTL_S [SCHEDULER]
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1])]
sys.path.insert(0, str(Path(__file__).parents[3] / "scripts" / "bench"))

from fake_block import PROGRAM  # noqa: E402
from rack import Clock, Heard, campaign  # noqa: E402

from netjoule.rigs import cluster  # noqa: E402
from netjoule.rigs.campaign_run import BlocksRun  # noqa: E402
from netjoule.store.campaign import Campaign  # noqa: E402


def main() -> None:
    """Run it to its end."""
    folder, blocks, rigs, ttl_s = Path(sys.argv[1]), *map(float, sys.argv[2:5])
    scheduler = next(iter(sys.argv[5:]), None)
    begun = (folder / "campaign.json").exists()
    with Campaign.open(folder) if begun else campaign(folder, int(blocks), int(rigs)) as of:
        heard = Heard()
        work = BlocksRun(of, Clock(), heard)
        names = of.topology.rigs
        with cluster.workers(
            names, of.path, work.inbox.put, scheduler=scheduler, program=PROGRAM, worker_ttl_s=ttl_s
        ) as workers:
            sys.stdout.write(f"{workers.dashboard}\n")
            sys.stdout.flush()
            work.run(workers)
        if heard.is_stopping:
            sys.stdout.write("stopping\n")
        for loss in heard.losses:
            sys.stdout.write(f"lost {loss}\n")


if __name__ == "__main__":
    main()
