"""`python -m tools.chaos`, which scripts/chaos runs."""

import sys

from tools.chaos.command import main

sys.exit(main())
