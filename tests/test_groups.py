"""One worker runs all tests of a group, so that what they share is made once; groups start before other tests."""

import pytest


@pytest.mark.xdist_group("groups")
def test_xdist_assigns_tests_by_their_group(request: pytest.FixtureRequest) -> None:
    if not getattr(request.config.option, "loadgroup", False):
        pytest.skip("groups need --dist loadgroup")
    assert request.node.nodeid.endswith("@groups")
