"""The agent: runs on the board, standard library only, Python 3.6 and newer."""
