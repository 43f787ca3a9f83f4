"""Several models as one unit of work: each is loaded once, and a call runs them one after the other."""

from array import array
from time import perf_counter

from ..home import Fault
from . import load as load_runtime
from .base import BaseRuntime

ENCODE = "encode"


def split(inputs):
    """Return {component: {input: array}} of arrays that are named component/input."""
    found = {}
    for name, value in inputs.items():
        component, _, rest = name.partition("/")
        found.setdefault(component, {})[rest] = value
    return found


class Runtime(BaseRuntime):
    """The models of a unit of work under one runtime.

    A mark is taken at the end of each step that encodes, then at each token that is written.
    """

    def __init__(self, part, folder):
        super().__init__(part, folder)
        plan = part["pipeline"]
        self._models = {}
        for component in plan["components"]:
            own = dict(part, pipeline=None, **component)
            self._models[component["name"]] = load_runtime(own, folder)
        self._encoders = [step for step in plan["steps"] if step["phase"] == ENCODE]
        self._generation = plan.get("generation")
        self.marks = len(self._encoders) + (self._generation["output_tokens"] if self._generation else 0)
        self._columns = None

    def check(self):
        """Check each model."""
        for model in self._models.values():
            model.check()

    def import_library(self):
        """Import the one library."""
        versions = [model.import_library() for model in self._models.values()]
        return versions[0]

    def load(self):
        """Load every model once: reading a prompt and writing after it share one decoder."""
        for model in self._models.values():
            model.load()
        self._gather()

    def _gather(self):
        """Take over what the models know; a fall-back of one is a fall-back of all."""
        for name, model in self._models.items():
            figures = dict(model.figures)
            detail = figures.pop("provider_detail", None)
            if figures.pop("provider_fell_back", False):
                self.figures.update(provider_fell_back=True, provider_detail=("%s: %s" % (name, detail))[:2000])
            self.figures.update(figures)

    def bind(self, inputs):
        """Return the call that does one unit of work.

        Parameters
        ----------
        inputs
            Arrays named component/input, for every input that no other component feeds. The decoder's hold the whole
            prompt: ids, and positions where it takes them.
        """
        given = split(inputs)
        steps = []
        for step in self._encoders:
            model = self._models[step["component"]]
            feeds = [(name, source.partition(".")[::2]) for name, source in step.get("bindings", {}).items()]
            steps.append((step["component"], model.function(), given.get(step["component"], {}), feeds))
        writer = self._writer(given) if self._generation else None
        row, clock = array("d", [0.0] * self.marks), perf_counter

        def call():
            outputs = {}
            for place, (name, run, fed, feeds) in enumerate(steps):
                if feeds:
                    fed = dict(fed)
                    for target, (component, output) in feeds:
                        fed[target] = outputs[component][output]
                outputs[name] = run(fed)
                row[place] = clock()
            if writer:
                writer.write(outputs, row, len(steps))
            if self._columns:
                done = self._done
                for column, moment in zip(self._columns, row):
                    column[done] = moment
                self._done = done + 1

        self._decoder = writer
        return call

    def _writer(self, given):
        from .decoder import Decoder

        name = self._generation["decoder"]
        steps = {step["phase"]: step for step in self.part["pipeline"]["steps"] if step["component"] == name}
        if set(steps) != {"prefill", "decode"}:
            raise Fault("bad-job", "the decoder %s has not the steps prefill and decode" % name)
        feeds = {phase: step.get("bindings", {}) for phase, step in steps.items()}
        return Decoder(self._models[name], self._generation, given.get(name, {}), feeds)

    def after_first(self):
        """Take over what the first call showed."""
        for model in self._models.values():
            model.after_first()
        self._gather()
        if self._decoder:
            self.figures["kv_cache_bytes"] = self._decoder.cache_bytes()

    def record(self, columns):
        """Take the columns of the marks."""
        self._columns, self._done = columns, 0

    def tokens(self):
        """Return the ids that the last call wrote."""
        return list(self._decoder.written)

    def device_peak(self):
        """Return the peak of the process: every model tells the same one."""
        peaks = [model.device_peak() for model in self._models.values()]
        return max((peak for peak in peaks if peak is not None), default=None)
