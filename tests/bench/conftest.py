"""Bench tests: hypothesis without a deadline, since a busy machine is no fault of the code's."""

from hypothesis import settings

settings.register_profile("bench", deadline=None)
settings.load_profile("bench")
