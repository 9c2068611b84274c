"""`python -m queue_pipeline.cluster`, which scripts/cluster runs."""

import sys

from queue_pipeline.cluster.command import main

sys.exit(main())
