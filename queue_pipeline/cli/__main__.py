"""`python -m queue_pipeline.cli`, for environments whose scripts are not on the path."""

import sys

from queue_pipeline.cli import main

sys.exit(main())
