"""What a rank reports to the launcher that started it."""

import contextlib
import json
import os
import time

ERROR_FILE = "TORCHELASTIC_ERROR_FILE"  # set by torchrun for each of its processes


def report_to_launcher(sentence: str) -> None:
    """Leaves a sentence where torchrun looks for it, so that its report of a failed job ends with it.

    Under another launcher, or none, nothing is written.
    """
    path = os.environ.get(ERROR_FILE)
    if path:
        detail = {"timestamp": str(int(time.time()))}
        with contextlib.suppress(OSError), open(path, "w", encoding="utf-8") as file:
            json.dump({"message": {"message": sentence, "extraInfo": detail}}, file)
