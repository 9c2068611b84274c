"""Speed and memory, measured beside the database's own limits in one run: `scripts/bench`.

A part is a module with a function `run(plan, report)`, listed in `__main__.PARTS`.
"""
