"""What a runtime offers to the worker."""

from ..home import Fault


class BaseRuntime:
    """A model under one runtime. The worker calls the methods in the order in which they stand here.

    Attributes
    ----------
    figures : dict
        Fields of ``PartResult`` that the runtime knows: ``providers_used``, ``provider_fell_back``, ``build_s`` …
    formats, providers : tuple
        What it takes.
    self_timed : bool
        The runtime issues and times the calls itself, in another process: it has ``drive`` instead of ``bind``.
    """

    formats = ()
    providers = ("cpu",)
    self_timed = False

    def __init__(self, part, folder):
        self.part = part
        self.folder = folder
        self.model = part.get("model")
        self.provider = part.get("provider", "cpu")
        self.threads = part.get("threads")
        self.options = part.get("options") or {}
        self.figures = {"provider_requested": self.provider, "threads": self.threads}

    def check(self):
        """Raise Fault bad-job where the part asks for what this runtime does not do."""
        name, form = self.part["runtime"], self.part.get("format", "none")
        if self.formats and form not in self.formats:
            raise Fault("bad-job", "%s runs %s, not %s" % (name, " or ".join(self.formats), form))
        if self.provider not in self.providers:
            raise Fault("bad-job", "%s has no provider %s here" % (name, self.provider))

    def import_library(self):
        """Import the runtime and return its version. Raises ImportError."""
        raise Fault("internal", "a runtime must say how it is imported")

    def take_inputs(self, inputs):
        """Take the arrays before the model is loaded, where loading depends on their shapes."""

    def load(self):
        """Load the model. Whatever it raises means that the model was rejected."""

    def bind(self, inputs):
        """Return the call to be timed: a function without arguments that runs the model on these arrays by name."""
        raise Fault("internal", "a runtime must give a call")

    def after_first(self):
        """Called once after the first call, before warm-up."""

    def infer(self, inputs):
        """Return the outputs for these inputs, both as dicts of arrays by name."""
        raise Fault("bad-job", "the %s runtime computes no outputs" % self.part["runtime"])

    def profile(self, inputs, calls):
        """Return rows of ``OpRow`` over so many calls."""
        raise Fault("bad-job", "the %s runtime cannot list operators" % self.part["runtime"])

    def device_peak(self):
        """Return the peak of the accelerator's memory that this process held, bytes; None where there is none."""
