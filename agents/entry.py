"""How the agent calls itself: the archive it runs from, and the commands that only it uses."""

import os

WORKER = "_worker"
SUPERVISE = "_supervise"

# The zipapp (or the folder) whose ``__main__.py`` runs the agent. Asked at import: Python 3.6 may give a relative path,
# and a supervisor changes its folder.
ARCHIVE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
