"""Multi-stream: queries of several samples one after the other; the latency is a whole query's."""

from . import closed_loop

COLUMNS = 2


def calls_per_query(spec):
    """Return how many calls serve a query of ``streams`` samples."""
    return -(-spec["streams"] // spec["batch"])


def samples_per_call(spec):
    """Return the samples of a query; what is recorded as one call is one query."""
    return calls_per_query(spec) * spec["batch"]


def calls_expected(spec, call_s):
    """Return the queries that fit into the window."""
    return closed_loop.calls_expected(spec, call_s * calls_per_query(spec))


def run(call, spec, writer):
    """Issue queries back to back."""
    repeats = calls_per_query(spec)

    def query():
        for _ in range(repeats):
            call()

    return closed_loop.run(call if repeats == 1 else query, spec, writer)
