"""`python -m tools.demo`, which scripts/demo runs."""

import sys

from tools.demo.command import main

sys.exit(main())
