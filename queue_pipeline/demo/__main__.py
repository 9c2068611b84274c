"""`python -m queue_pipeline.demo`, which scripts/demo runs."""

import sys

from queue_pipeline.demo.command import main

sys.exit(main())
