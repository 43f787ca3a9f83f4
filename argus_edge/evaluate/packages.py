"""What every evaluation imports, asked for before anything is read."""

from __future__ import annotations

from argus_edge.errors import needing


def require_packages() -> None:
    """Raise :class:`~argus_edge.errors.MissingDependencyError` where the extra ``eval`` is not installed."""
    with needing("eval", "Evaluating"):
        import PIL.Image  # noqa: F401
        import pyarrow  # noqa: F401
        import scipy  # noqa: F401
