"""argus-edge: which vision-language model, at which precision, will hold up on which board.

The verbs of the command line are functions of :mod:`argus_edge.api`.
"""

from argus_edge._version import __version__

__all__ = ["__version__"]
