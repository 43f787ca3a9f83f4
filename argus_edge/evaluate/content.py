"""From a dataset's folder to what is evaluated on: limited, hashed, without broken images."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from argus_edge.errors import InputError
from argus_edge.evaluate.datasets import Dataset, ImageRef, read_dataset
from argus_edge.evaluate.datasets.index import ImageStatus, dataset_sha256, inspect_images
from argus_edge.evaluate.metrics import MINIMUM_IMAGES, DocumentFrequencies
from argus_edge.evaluate.store import Store
from argus_edge.evaluate.units import Content
from argus_edge.schema.evaluation import BrokenImage, DatasetInfo
from argus_edge.text import pasted

__all__ = ["Prepared", "prepare"]

_CHUNK = 512


@dataclass(frozen=True)
class Prepared:
    """A dataset ready to be evaluated on, and what a report says about it."""

    content: Content
    info: DatasetInfo
    frequencies: DocumentFrequencies | None


def prepare(
    name: str,
    folder: Path,
    *,
    store: Store,
    split: str | None = None,
    limit: int | None = None,
    frequencies: DocumentFrequencies | None = None,
    threads: int,
    say: Callable[[str], None],
) -> Prepared:
    """Read a dataset, decode and hash its images once, and leave the broken ones out.

    Parameters
    ----------
    limit
        Only the first so many images of the split. CIDEr's document frequencies are still the whole split's.
    frequencies
        Others to use in their place.

    Raises
    ------
    InputError
        The folder is not as published, no image is left, or more than half of them cannot be read.
    """
    whole = read_dataset(name, folder, split=split)
    part = whole.select(range(min(limit, len(whole.images)))) if limit else whole
    say(f"{name}: reading {len(part.images)} images …")
    statuses = _statuses(part.images, store, threads)
    good = [index for index, status in enumerate(statuses) if not status.reason]
    broken = [
        BrokenImage(image_id=ref.id, reason=status.reason[:500])
        for ref, status in zip(part.images, statuses, strict=True)
        if status.reason
    ]
    if 2 * len(broken) > len(part.images) or not good:
        places = [ref.path for ref, status in zip(part.images, statuses, strict=True) if status.reason]
        raise InputError(
            f"{len(broken)} of the {len(part.images)} images of {name} cannot be read; the first: "
            f"{broken[0].image_id}: {broken[0].reason}"
            if broken
            else f"{name} has no images.",
            where=places[0] if places else str(folder),
            next_step=f"argus-edge data check {pasted(f'{name}={folder}')}",
        )
    if broken:
        say(f"{name}: {len(broken)} broken image(s) are left out, for every model alike; they are listed in the report")
    kept = part.select(good)
    hashes = tuple(statuses[index].sha256 for index in good)
    info = DatasetInfo(
        name=name,
        kind=kept.kind,
        split=kept.split,
        sha256=dataset_sha256(kept, list(hashes)),
        images=len(kept.images),
        captions=sum(map(len, kept.captions)),
        questions=len(kept.questions),
        limit=limit,
        image_ids=[ref.id for ref in kept.images],
        broken=broken,
    )
    return Prepared(Content(kept, hashes), info, frequencies or _frequencies(whole))


def _frequencies(whole: Dataset) -> DocumentFrequencies | None:
    references = [captions for captions in whole.captions if captions]
    return DocumentFrequencies.from_references(references) if len(references) >= MINIMUM_IMAGES else None


def _statuses(images: Sequence[ImageRef], store: Store, threads: int) -> list[ImageStatus]:
    """Return each image's status, from an earlier run where the files have the same size and time of change."""
    found: list[ImageStatus] = []
    for start in range(0, len(images), _CHUNK):
        chunk = tuple(images[start : start + _CHUNK])
        key = hashlib.sha256(json.dumps(["inspect", 1, *map(_stamp, chunk)]).encode()).hexdigest()
        if key in store:
            found += [ImageStatus(*row) for row in store.get(key)]
        else:
            statuses = list(inspect_images(chunk, threads=threads))
            store.put(key, [list(vars(status).values()) for status in statuses])
            found += statuses
    return found


def _stamp(ref: ImageRef) -> list[object]:
    stamps: list[object] = [list(ref.drawn)]
    for path in filter(None, (ref.path, ref.boxes_path)):
        try:
            status = os.stat(path)
        except OSError:
            stamps.append([path])
        else:
            stamps.append([os.path.abspath(path), status.st_size, status.st_mtime_ns])
    return stamps
