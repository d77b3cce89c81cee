# SPDX-License-Identifier: GPL-2.0-or-later
"""The other tunnel, and what a node answers by itself."""

import pytest
from fabric import NODES, VIP


@pytest.mark.parametrize("family", (4, 6))
def test_gue(fabric, family):
    """UDP around the packet: the same backends for the same flows."""
    before = fabric.flows(family, n=100)
    for node in NODES:
        fabric.write_config(node, fabric.config(node).replace(
            "    pool: web", "    pool: web\n    forward: gue"))
        fabric.must(node, "reload")
    got = fabric.http(60, family)
    assert [r for r in got if not r.ok] == []
    assert fabric.flows(family, n=100) == before


@pytest.mark.parametrize("family", (4, 6))
def test_vip_answers_ping(fabric, family):
    got = fabric.run("client", "ping", f"-{family}", "-c", "5", "-i", "0.2",
                     "-W", "2", VIP[family], check=False)
    assert got.returncode == 0 and " 0% packet loss" in got.stdout, got.stdout
