"""The `argus-edge` command: command groups are imported only when they are called."""

from __future__ import annotations

import errno
import importlib
import sys

import click

from argus_edge._version import __version__
from argus_edge.cli.output import open_closed, say, write_plainly
from argus_edge.errors import ArgusError, HostError, MissingDependencyError, shipped_folder

# name -> "module:attribute, one line of help"; the help is here so that `--help` imports no command.
COMMANDS: dict[str, tuple[str, str]] = {
    "bench": ("argus_edge.cli.bench:bench", "Time a model on a device: latency, memory, throughput, energy, validity."),
    "device": ("argus_edge.cli.device:device", "The inventory of boards: add, probe, diagnose, set up."),
    "export": ("argus_edge.cli.export:export", "Turn a model into a checked bundle (ONNX, TFLite, torch)."),
    "inspect": ("argus_edge.cli.inspect:inspect", "What a bundle or a model file holds, and which boards can run it."),
    "eval": ("argus_edge.cli.evaluate:evaluate", "Measure capability and robustness on the host."),
    "data": ("argus_edge.cli.data:data", "Check datasets, or write a small sample of real photographs."),
    "perturb": ("argus_edge.cli.perturb:perturb", "Draw every perturbation of an image or a text."),
    "score": ("argus_edge.cli.score:score", "Merge bench and eval reports into the ARGUS score."),
    "validate": ("argus_edge.cli.validate:validate", "Hold reports against a budget: the gate before shipping."),
    "compare": ("argus_edge.cli.compare:compare", "Better, worse, no difference, or too few runs."),
    "size": ("argus_edge.cli.size:size", "Which model, precision and board fit a budget."),
    "report": ("argus_edge.cli.report:report", "One self-contained page from many reports."),
    "run": ("argus_edge.cli.run:run", "Carry out a whole plan, resumable."),
    "judge": ("argus_edge.cli.judge:judge", "Calibrated intervals for a VLM judge's scores."),
    "runs": ("argus_edge.cli.runs:runs", "List, show, stop and prune recorded runs."),
    "schema": ("argus_edge.cli.schema:schema", "Print the JSON Schema of an artefact."),
}

# EX_SOFTWARE of sysexits.h: what Python leaves with after a traceback, 1, is a failed gate's.
OUR_FAULT = 70

# Packages that the base install does not have, and the extra that brings each.
EXTRA_OF = {
    "PIL": "eval",
    "pyarrow": "eval",
    "scipy": "eval",
    "torch": "models",
    "transformers": "models",
    "sklearn": "judge",
    "jinja2": "report",
    "plotly": "report",
    "ray": "ray",
}


class LazyGroup(click.Group):
    """A click group whose commands are imported on first use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names in the order of a user's work, not of the alphabet."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the module that holds the command and return it."""
        if cmd_name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[cmd_name][0].partition(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the table of commands from the registry alone."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Say where the pages and starters are that helps and messages name."""
        formatter.write_paragraph()
        formatter.write_text("Pages (docs/README.md first) and starters (profiles/budgets/, profiles/weights/) are in")
        with formatter.indentation():
            formatter.write(f"{'':{formatter.current_indent}}{shipped_folder()}\n")


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="argus-edge")
def cli() -> None:
    """Tell which vision-language model, at which precision, will hold up on which board."""


def main(argv: list[str] | None = None) -> None:
    """Run the command line and exit with the code of the error's class; our own fault is never a gate's verdict."""
    open_closed()
    write_plainly()
    try:
        _run(argv)
    except Exception:
        import traceback  # on no other way

        traceback.print_exc()
        say("error: This is a fault of argus-edge itself.\n  next:  report it with the lines above")
        sys.exit(OUR_FAULT)


def _run(argv: list[str] | None) -> None:
    try:
        status = cli.main(args=argv, prog_name="argus-edge", standalone_mode=False)
    except ArgusError as error:
        say(f"error: {error}")
        sys.exit(error.exit_code)
    except click.exceptions.Abort:
        click.echo("interrupted", err=True)
        sys.exit(130)
    except click.ClickException as error:
        error.show()
        sys.exit(2)
    except BrokenPipeError:
        # `argus-edge … | head`: the reader has seen enough.
        sys.stderr.close()
        sys.exit(0)
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in EXTRA_OF:
            raise
        missing = MissingDependencyError(package, EXTRA_OF[package], needed_for="This command")
        say(f"error: {missing}")
        sys.exit(missing.exit_code)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        # Wherever it was: a temporary file, a cache, a library's own.
        full = HostError("The disk is full.", where=error.filename, next_step="free some space and run it again")
        say(f"error: {full}")
        sys.exit(full.exit_code)
    sys.exit(status if isinstance(status, int) else 0)
