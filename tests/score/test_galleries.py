"""Retrieval figures over galleries of different sizes are not compared."""

from __future__ import annotations

import pytest

from argus_edge.errors import InputError
from argus_edge.score.cohort import check_evals
from tests.support.reports import evaluation


def of_gallery(name, images):
    found = evaluation(name, {("retrieval", "coco"): 0.5})
    found.artifact.cells[0].gallery_images = images
    return found


def test_another_gallery_is_refused_and_the_same_is_not():
    check_evals([of_gallery("a", 100), of_gallery("b", 100)])
    with pytest.raises(InputError, match="gallery") as caught:
        check_evals([of_gallery("a", 5000), of_gallery("b", 100)])
    assert "--limit" in caught.value.next_step
