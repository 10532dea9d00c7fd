"""How much the property tests try: little by default, much in `make test-full`, ever new cases in `make fuzz`."""

from __future__ import annotations

import os
import signal

from hypothesis import HealthCheck, settings

from abound.vectorise import blocks

QUIET = [HealthCheck.too_slow, HealthCheck.data_too_large]
# The gate tries the same cases each time, so that a red run is about the change; `make fuzz` looks for new ones.
settings.register_profile("quick", max_examples=40, deadline=None, derandomize=True, suppress_health_check=QUIET)
settings.register_profile("full", max_examples=300, deadline=None, derandomize=True, suppress_health_check=QUIET)
settings.register_profile("fuzz", max_examples=1000, deadline=None, suppress_health_check=QUIET)
settings.load_profile(os.environ.get("ABOUND_TEST_PROFILE", "quick"))

# Tests have little text; it must still go through as many threads as they ask for.
blocks.SMALL_BYTES = 0

# In the background of a shell Ctrl-C is ignored, also by what is started there: tests of it need it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
