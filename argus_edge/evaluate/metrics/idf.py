"""Document frequencies for CIDEr: counted from a split's references, or read from a file, and named by their hash."""

from __future__ import annotations

import gzip
import hashlib
import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from argus_edge.artifacts import atomic_open, read_file
from argus_edge.errors import InputError
from argus_edge.evaluate.metrics.ngrams import NgramIndex, low, pair
from argus_edge.evaluate.metrics.tokenizer import TOKENIZER, tokenize, words_of

__all__ = ["MINIMUM_IMAGES", "DocumentFrequencies"]

MINIMUM_IMAGES = 10
"""With one image every weight is log(1/1) = 0; with a handful, nearly every n-gram has the same weight, log(n)."""

_KIND = "argus-edge document frequencies"
_MAX_BYTES = 1 << 28
_MAX_TEXT_BYTES = 1 << 30


@dataclass(frozen=True)
class DocumentFrequencies:
    """In how many images' references each n-gram occurs.

    Attributes
    ----------
    images
        Number of images counted over.
    counts
        N-gram (1 to 4 tokens joined by a space) to the number of images, for those that occur in two or more;
        any other counts as one, as in pycocoevalcap.
    """

    images: int
    counts: dict[str, int]

    @classmethod
    def from_references(cls, references: Sequence[Sequence[str]]) -> DocumentFrequencies:
        """Count over the raw reference captions of each image of a whole split.

        Raises
        ------
        InputError
            Fewer than :data:`MINIMUM_IMAGES` images.
        """
        return cls.from_words([[words_of(tokenize(caption)) for caption in captions] for captions in references])

    @classmethod
    def from_words(cls, references: Sequence[Sequence[Sequence[str]]]) -> DocumentFrequencies:
        """Count over the words of references; see :meth:`from_references`."""
        if len(references) < MINIMUM_IMAGES:
            raise InputError(
                f"CIDEr weighs words by how many images they describe; {len(references)} image(s) are too few for "
                f"that (at least {MINIMUM_IMAGES}).",
                next_step="argus-edge data idf coco=PATH --out idf.json.gz (or `sample` for coco=PATH), then add --idf "
                "idf.json.gz; or evaluate more images",
            )
        flat = [words for captions in references for words in captions]
        image = np.repeat(np.arange(len(references)), [len(captions) for captions in references])
        index = NgramIndex(flat)
        counts: dict[str, int] = {}
        for order, table in enumerate(index.count(flat), start=1):
            # However often an image's captions use an n-gram, the image counts once.
            ngrams = low(np.unique(pair(image[table.caption], table.ngram)))
            found = np.bincount(ngrams, minlength=index.size(order))
            often = np.flatnonzero(found > 1)
            counts.update(zip(index.texts(order, often), found[often].tolist(), strict=True))
        return cls(len(references), counts)

    @cached_property
    def sha256(self) -> str:
        """The hash of the canonical text: what makes two CIDEr figures comparable."""
        return hashlib.sha256(self._text().encode()).hexdigest()

    def _text(self) -> str:
        document = {
            "kind": _KIND,
            "schema_version": 1,
            "tokenizer": TOKENIZER,
            "images": self.images,
            "ngrams": dict(sorted(self.counts.items())),
        }
        return json.dumps(document, ensure_ascii=False, indent=0)

    def save(self, path: Path | str) -> None:
        """Write the frequencies to a gzipped JSON file, the same bytes for the same frequencies."""
        with atomic_open(path) as file:
            file.write(gzip.compress(self._text().encode(), mtime=0))

    @classmethod
    def load(cls, path: Path | str) -> DocumentFrequencies:
        """Read a file that :meth:`save` wrote.

        Raises
        ------
        InputError
            Not such a file, counted with another tokeniser, or its figures do not hold together.
        """
        where = str(path)
        try:
            decoder = zlib.decompressobj(wbits=31)
            text = decoder.decompress(read_file(path, limit=_MAX_BYTES), _MAX_TEXT_BYTES)
            document = json.loads(text)
            kind, tokenizer = document["kind"], document["tokenizer"]
            images, counts = document["images"], document["ngrams"]
        except (zlib.error, ValueError, KeyError, TypeError, RecursionError) as error:
            raise InputError("Not a file of document frequencies.", where=where) from error
        if kind != _KIND or document.get("schema_version") != 1:
            raise InputError("Not a file of document frequencies that this version reads.", where=where)
        if tokenizer != TOKENIZER:
            raise InputError(f"Counted with the tokeniser {str(tokenizer)[:60]!r}, not {TOKENIZER!r}.", where=where)
        if not isinstance(counts, dict) or type(images) is not int or images < MINIMUM_IMAGES:
            raise InputError(f"Counted over fewer than {MINIMUM_IMAGES} images, or not a count.", where=where)
        if not all(type(count) is int and 2 <= count <= images for count in counts.values()):
            raise InputError("An n-gram occurs in more images than there are, or in fewer than two.", where=where)
        return cls(images, counts)
