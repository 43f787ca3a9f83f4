"""`argus-edge`, and `python -m argus_edge`: sees to Ctrl-C before anything else is imported."""

import os
import signal


def main() -> None:
    """Run the command line.

    Ctrl-C before it has begun, or after it has ended, has nothing to stop: it ends the process without a traceback.
    """
    heard = signal.getsignal(signal.SIGINT) is not signal.SIG_IGN
    if heard:
        signal.signal(signal.SIGINT, _leave)
    from argus_edge.cli.main import main as command

    if heard:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        command()
    except KeyboardInterrupt:
        _leave()
    finally:
        if heard:
            signal.signal(signal.SIGINT, _leave)


def _leave(*_: object) -> None:
    os.write(2, b"interrupted\n")
    os._exit(130)


if __name__ == "__main__":
    main()
