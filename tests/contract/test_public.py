"""What the public names show: `dir` lists them and nothing else."""

import pytest

import drmdp

MODULES = [drmdp, drmdp.cluster, drmdp.formats, drmdp.instances, drmdp.plot, drmdp.policies, drmdp.radius]


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_dir_shows_public_names_only(module):
    assert dir(module) == sorted(module.__all__)
