"""A user's own class, given as ``module:Class``."""

from __future__ import annotations

import hashlib
import importlib
import inspect
import re
import sys
from pathlib import Path
from typing import Any

from argus_edge.errors import InputError
from argus_edge.evaluate.models.base import ModelSpec, capabilities_of

__all__ = ["class_sha256", "find_class", "is_class", "load_class", "make", "told"]

_CLASS = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")
_HELP = "see docs/eval.md, A class of your own"


def is_class(reference: str) -> bool:
    """Tell whether what the user typed is ``module:Class`` and no folder of that name."""
    return _CLASS.fullmatch(reference) is not None and not Path(reference).exists()


def told(error: BaseException) -> str:
    """Return what a user's code raised, as a person reads it; leaving the process is an error too."""
    return f"{type(error).__name__}: {str(error)[:500]}"


def find_class(reference: str, search_path: str) -> Any:
    """Import ``module:Class``, looking in ``search_path`` first.

    Raises
    ------
    InputError
        No such module or class, or the module fails when it is imported.
    """
    module_name, _, class_name = reference.partition(":")
    if search_path not in sys.path:
        sys.path.insert(0, search_path)
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        raise InputError(
            f"No module {error.name!r}.", where=reference, next_step=f"run from the folder that holds it; {_HELP}"
        ) from error
    except (Exception, SystemExit) as error:  # whatever the user's module raises is the user's to read
        raise InputError(f"The module fails when it is imported: {told(error)}", where=reference) from error
    found = getattr(module, class_name, None)
    if not callable(found):
        raise InputError(f"The module has no class {class_name!r}.", where=reference, next_step=_HELP)
    return found


def class_sha256(found: Any) -> str:
    """Return a hash of the module's source and, where the class says what its weights are, of that.

    A class whose weights can change without its source has a ``fingerprint()`` class method that returns a text.

    Raises
    ------
    InputError
        There is no source file, or ``fingerprint()`` fails.
    """
    reference = f"{getattr(found, '__module__', '?')}:{getattr(found, '__qualname__', '?')}"
    try:
        source = inspect.getsourcefile(found)
        digest = hashlib.sha256(Path(source).read_bytes() if source else b"")
    except (TypeError, OSError) as error:
        raise InputError("It has no source file: not a class of yours.", where=reference, next_step=_HELP) from error
    digest.update(reference.encode())
    fingerprint = getattr(found, "fingerprint", None)
    if callable(fingerprint):
        try:
            digest.update(str(fingerprint()).encode())
        except (Exception, SystemExit) as error:  # whatever the user's class raises is the user's to read
            raise InputError(f"The class's fingerprint() fails: {told(error)}", where=reference) from error
    return digest.hexdigest()


def make(found: Any, reference: str, compute: str = "cpu") -> Any:
    """Make an object of the user's class; ``compute`` is passed to a constructor that takes it.

    Raises
    ------
    InputError
        The constructor fails.
    """
    try:
        takes_compute = "compute" in inspect.signature(found).parameters
        return found(compute=compute) if takes_compute else found()
    except (Exception, SystemExit) as error:  # whatever the user's class raises is the user's to read
        raise InputError(f"The class cannot be made: {told(error)}", where=reference) from error


def load_class(spec: ModelSpec) -> Any:
    """Make one of the user's models for evaluation.

    Raises
    ------
    InputError
        The constructor fails, or the object has none of the methods that make a capability.
    """
    found = find_class(spec.location, spec.search_path)
    torch = sys.modules.get("torch")
    if torch is not None:
        # Not imported here: a class may do without. Where it is used, sums are split as on every other worker.
        torch.set_num_threads(spec.threads)
    model = make(found, spec.location, spec.compute)
    if not capabilities_of(model):
        raise InputError(
            "The class has none of: embed_images and embed_texts; score_pairs; caption; answer; choose.",
            where=spec.location,
            next_step=_HELP,
        )
    return model
