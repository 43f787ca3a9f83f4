"""What a runtime offers to the worker."""

from ..home import Fault


class BaseRuntime:
    """A model under one runtime. The worker calls the methods in the order in which they stand here.

    Attributes
    ----------
    figures : dict
        Fields of ``PartResult`` that the runtime knows: ``providers_used``, ``provider_fell_back``, ``build_s`` …
    notes : list of str
        What the reader must know; told once, after the timed window.
    formats, providers : tuple
        What it takes.
    self_timed : bool
        The runtime issues and times the calls itself, in another process: it has ``drive`` instead of ``bind``.
    marks : int
        Moments within a call that it records, beside the call's start and end.
    """

    formats = ()
    providers = ("cpu",)
    self_timed = False
    marks = 0

    def __init__(self, part, folder):
        self.part = part
        self.folder = folder
        self.model = part.get("model")
        self.provider = part.get("provider", "cpu")
        self.threads = part.get("threads")
        self.options = part.get("options") or {}
        self.figures = {"provider_requested": self.provider, "threads": self.threads}
        self.notes = []

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

    def record(self, columns):
        """Take the ``marks`` columns of a window: the k-th call from here on fills the k-th element of each."""

    def processes(self):
        """Return the ids of processes, beside this one, whose work is the run's own."""
        return []

    def function(self):
        """Return a function from inputs to outputs, both dicts by name, for inputs that change from call to call.

        It takes arrays, and its own outputs; these are whatever is cheap to feed again: ``array`` makes arrays of them.
        """
        raise Fault("bad-job", "the %s runtime computes no outputs" % self.part["runtime"])

    def array(self, value):
        """Return an output of ``function`` as an array."""
        return value

    def infer(self, inputs):
        """Return the outputs for these inputs, both as dicts of arrays by name."""
        return {name: self.array(value) for name, value in self.function()(inputs).items()}

    def profile(self, inputs, calls):
        """Return rows of ``OpRow`` over so many calls."""
        raise Fault("bad-job", "the %s runtime cannot list operators" % self.part["runtime"])

    def memory(self):
        """Return fields of ``MemoryFigures`` of what runs outside this process."""
        return {}

    def device_peak(self):
        """Return the peak of the accelerator's memory that this process held, bytes; None where there is none."""
