"""The ARGUS score: P, CDC, RR, E, their uncertainty and sensitivity."""
