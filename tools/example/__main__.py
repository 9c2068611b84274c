"""`python -m tools.example`, which scripts/example runs."""

import sys

from tools.example.command import main

sys.exit(main())
