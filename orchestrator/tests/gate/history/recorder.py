# SPDX-License-Identifier: Apache-2.0
"""Records verdicts until it is killed or refused: recorder.py HISTORY FOLDER PREFIX.

Says "ready", then each id that is kept; ends as the command would.
"""

import itertools
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from verdicts import verdict

from netjoule.core.errors import NetjouleError
from netjoule.gate.history import store

if __name__ == "__main__":
    history, folder, prefix = sys.argv[1:]
    print("ready", flush=True)
    for number in itertools.count():
        document = verdict(id=f"{prefix}-{number}")
        try:
            store.record(document, Path(folder), history)
        except NetjouleError as error:
            print(error, file=sys.stderr)
            sys.exit(error.exit_code)
        print(document["id"], flush=True)
