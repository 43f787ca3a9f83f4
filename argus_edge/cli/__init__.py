"""The command line: one small module per command group; parses, calls, prints; no logic."""
