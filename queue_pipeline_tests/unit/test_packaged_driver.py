import pytest

from queue_pipeline.transport.dialects.odbc import fitting_driver

BUILDS = [
    f"/site/libs/linux/{system}/{machine}/lib/libmsodbcsql-18.6.so.2.1"
    for system in ("rhel", "suse", "debian_ubuntu")
    for machine in ("x86_64", "arm64")
]


@pytest.mark.parametrize(
    ("systems", "machine", "part"),
    [
        (["debian"], "x86_64", "debian_ubuntu/x86_64"),
        (["linuxmint", "ubuntu", "debian"], "x86_64", "debian_ubuntu/x86_64"),
        (["rocky", "rhel", "centos", "fedora"], "aarch64", "rhel/arm64"),
        (["opensuse-leap", "suse", "opensuse"], "AMD64", "suse/x86_64"),
        (["unheard-of"], "x86_64", "debian_ubuntu/x86_64"),
    ],
)
def test_the_build_for_this_system_and_machine_is_chosen(systems, machine, part):
    chosen = fitting_driver(BUILDS, systems, machine)
    assert chosen is not None and part in chosen


def test_no_build_for_this_machine_is_no_driver():
    assert fitting_driver(BUILDS, ["debian"], "riscv64") is None
    assert fitting_driver([], ["debian"], "x86_64") is None
