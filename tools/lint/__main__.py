"""`python -m tools.lint` runs every check and prints what it finds; the exit code is 1 if that is anything."""

from __future__ import annotations

import sys

from queue_pipeline.transport.texts import count_of
from tools.lint import conformance, dependencies, files, layers, sql_style

CHECKS = (
    files.find_foreign_paths,
    files.find_scripts_that_cannot_run,
    dependencies.find_bad_pins,
    dependencies.find_missing_pins,
    conformance.find_differences,
    layers.find_imports_of_upper_layers,
    layers.find_imports_of_a_layout,
    layers.find_classes_of_one_name,
    layers.find_rooms_that_are_too_large,
    layers.find_sql_in_python,
    layers.find_header_names,
    sql_style.find_bad_sections,
)


def main() -> int:
    """Run all checks."""
    found = [line for check in CHECKS for line in check()]
    for line in found:
        print(line)
    print(f"tools.lint: {count_of(len(found), 'problem')}" if found else "tools.lint: all checks passed")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
