"""`python -m tools.cluster`, which scripts/cluster runs."""

import sys

from tools.cluster.command import main

sys.exit(main())
