"""`python -m argus_edge`: the command line."""

from argus_edge.cli.main import main

main()
