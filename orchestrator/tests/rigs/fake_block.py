# SPDX-License-Identifier: Apache-2.0
"""In place of `netjoule resume`: completes a block's campaign without a testbed, in FAKE_RUN_S a run.

Usage: fake_block.py FOLDER ...
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[3] / "scripts" / "bench"))

import synthetic

from netjoule.core.clock import boot_id
from netjoule.store.campaign import Campaign

PROGRAM = (sys.executable, str(Path(__file__)))


def main() -> None:
    """Complete what is left of the campaign."""
    with Campaign.open(Path(sys.argv[1])) as campaign:
        rig = str(campaign.document["topology"]["rig"])
        if rig in os.environ.get("FAKE_BROKEN", "").split():
            sys.exit(f"netjoule: the meter of {rig} is silent")
        done = 0

        def pause() -> None:
            nonlocal done
            told = {"t_s": 0.0, "done": done, "total": len(campaign.rows()), "remaining_s": 1.0}
            sys.stdout.write(json.dumps({"event": "run_started", **told}) + "\n")
            sys.stdout.flush()
            done += 1
            time.sleep(float(os.environ.get("FAKE_RUN_S", "0")))

        synthetic.finish(campaign, boot_id(), pause)


if __name__ == "__main__":
    main()
