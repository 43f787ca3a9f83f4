"""The agent's command line: ``python3 agent.pyz [--home DIR] COMMAND [ARGUMENT ...]``; see ``wire``."""

import os
import sys

from . import entry, wire

# Arguments that a command takes: (fewest, most).
ARITY = {
    wire.PROBE: (0, 4),
    wire.CHECK: (0, 2),
    wire.START: (1, 1),
    wire.FOLLOW: (2, 2),
    wire.STATUS: (1, 1),
    wire.LIST: (0, 0),
    wire.STOP: (1, 1),
    wire.COLLECT: (1, 1),
    wire.REMOVE: (1, 1),
    wire.KEEP: (0, 1),
    wire.HOLDER: (0, 0),
}


def emit(document):
    """Write a framed line at once."""
    sys.stdout.write(wire.frame(document))
    sys.stdout.flush()


def answer(home, command, arguments):
    """Return what a command answers; ``follow`` has emitted its own by then and returns None."""
    from .home import Fault

    fewest, most = ARITY.get(command, (1, 0))
    if not fewest <= len(arguments) <= most:
        raise Fault("bad-job", "usage: [--home DIR] %s [ARGUMENT ...]" % "|".join(wire.COMMANDS))
    if command in (wire.PROBE, wire.CHECK):
        given = options(arguments)
        root = given.get("--system-root", "/")
        if command == wire.PROBE:
            from .probe import probe

            names = given.get("--runtimes")
            return probe(root, home, names.split(",") if names is not None else None)
        from .check import check

        return check(home, root)
    if command == wire.START:
        from .start import start

        return start(home, *arguments)
    if command == wire.HOLDER:
        from .home import DeviceLock, path

        os.makedirs(path(home), mode=0o700, exist_ok=True)
        return {"holder": DeviceLock(home).held()}
    if command == wire.KEEP:
        from .keep import keep

        return keep(home, *arguments)
    if command == wire.FOLLOW:
        from .follow import follow

        return follow(home, arguments[0], int(arguments[1]), emit)
    from . import runs

    commands = {
        wire.STATUS: runs.status,
        wire.LIST: runs.list_runs,
        wire.STOP: runs.stop,
        wire.COLLECT: runs.collect,
        wire.REMOVE: runs.remove,
    }
    return commands[command](home, *arguments)


def options(arguments):
    """Return option -> value of ``probe`` and ``check``."""
    from .home import Fault

    given = dict(zip(arguments[::2], arguments[1::2]))
    if len(arguments) % 2 or set(given) - {"--system-root", "--runtimes"}:
        raise Fault("bad-job", "usage: probe|check [--system-root DIR] [--runtimes NAME,NAME]")
    return given


def main(arguments=None):
    """Run a command and return the exit status."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    os.umask(0o077)
    if arguments and arguments[0] == entry.WORKER:
        from .worker import main as work

        return work(*arguments[1:])
    if arguments and arguments[0] == entry.SUPERVISE:
        from .supervisor import main as supervise

        return supervise(*arguments[1:])
    from .home import DEFAULT, Fault, no_space

    home = DEFAULT
    if len(arguments) > 1 and arguments[0] == "--home":
        home, arguments = arguments[1], arguments[2:]
    try:
        document = answer(os.path.abspath(os.path.expanduser(home)), arguments[0] if arguments else "", arguments[1:])
        if document is not None:
            emit(document)
    except BrokenPipeError:
        os._exit(1)  # the host has gone; there is nobody to tell
    except Fault as fault:
        emit({"error": fault.document()})
        return 1
    except Exception as error:
        import traceback

        kind = "no-space" if isinstance(error, OSError) and no_space(error) else "internal"
        tail = traceback.format_exc()[-1500:]
        emit({"error": Fault(kind, "%s: %s" % (type(error).__name__, error), traceback=tail).document()})
        return 1
    return 0
