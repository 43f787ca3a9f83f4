"""LiteRT: ``ai_edge_litert``, or its predecessor ``tflite_runtime``, which has the same interface.

A call sets the inputs, invokes, and reads the outputs, as an application does: the interpreter may use the inputs'
memory for intermediate results, so inputs that are set once are gone after the first call.
"""

from ..home import Fault
from .base import BaseRuntime


def import_interpreter():
    """Return (module, package's name), the successor first. Raises ImportError with both reasons."""
    try:
        from ai_edge_litert import interpreter

        return interpreter, "ai_edge_litert"
    except ImportError as error:
        reason = error
    try:
        from tflite_runtime import interpreter
    except ImportError as error:
        raise ImportError("ai_edge_litert: %s; tflite_runtime: %s" % (reason, error)) from error
    return interpreter, "tflite_runtime"


def package_version(package):
    """Return a package's version."""
    module = __import__(package)
    version = getattr(module, "__version__", None)
    if version:
        return version
    try:
        from importlib.metadata import version as installed  # novermin
    except ImportError:
        return "unknown"
    return installed(package.replace("_", "-"))


def plain(name):
    """Return a tensor's name without what converters put around it: serving_default_x:0 -> x."""
    name = name.rpartition(":")[0] or name
    return name[len("serving_default_") :] if name.startswith("serving_default_") else name


class Runtime(BaseRuntime):
    """An interpreter. CPU only; XNNPACK is applied by default, and left out with the option ``{"xnnpack": false}``."""

    formats = ("tflite",)
    providers = ("cpu", "xnnpack")

    def import_library(self):
        """Import the interpreter's module."""
        self._library, package = import_interpreter()
        self.figures["package"] = package
        return package_version(package)

    def load(self):
        """Make the interpreter and allocate its tensors."""
        settings = {"num_threads": self.threads} if self.threads else {}
        delegated = self.options.get("xnnpack", True)
        if not delegated:
            resolver = self._library.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
            settings["experimental_op_resolver_type"] = resolver
        self._interpreter = self._library.Interpreter(model_path=self.model, **settings)
        self._interpreter.allocate_tensors()
        self.figures["providers_used"] = ["xnnpack", "cpu"] if delegated else ["cpu"]
        if delegated:
            self.figures["provider_detail"] = (
                "XNNPACK takes the operators it knows; %s does not tell which" % (self.figures["package"])
            )

    def _names(self, details, side):
        """Return {name: tensor} by every name that may be meant: the signature's, the tensor's, its plain form."""
        names = {}
        for detail in details:
            names[plain(detail["name"])] = names[detail["name"]] = detail
        signatures = self._interpreter.get_signature_list()
        if len(signatures) == 1:
            runner = self._interpreter.get_signature_runner(next(iter(signatures)))
            ask = getattr(runner, "get_%s_details" % side, dict)
            by_index = {detail["index"]: detail for detail in details}
            for name, detail in ask().items():
                if detail["index"] in by_index:
                    names[name] = by_index[detail["index"]]
        return names

    def _assign(self, inputs):
        """Return [(name, tensor index, array)] of all inputs, resizing those whose shape differs."""
        details = self._interpreter.get_input_details()
        names = self._names(details, "input")
        chosen = {names[name]["index"]: (name, array) for name, array in inputs.items() if name in names}
        if len(details) == 1 and not chosen and len(inputs) == 1:
            chosen = {details[0]["index"]: next(iter(inputs.items()))}
        missing = [detail["name"] for detail in details if detail["index"] not in chosen]
        if missing:
            raise Fault("input-rejected", "no array was given for the input(s) %s" % ", ".join(missing))
        resized = False
        for detail in details:
            shape = chosen[detail["index"]][1].shape
            if tuple(detail["shape"]) != shape:
                self._interpreter.resize_tensor_input(detail["index"], shape)
                resized = True
        if resized:
            self._interpreter.allocate_tensors()
        return [(name, index, array) for index, (name, array) in chosen.items()]

    def bind(self, inputs):
        """Return a call that sets, invokes and reads."""
        interpreter = self._interpreter
        pairs = [(index, array) for _, index, array in self._assign(inputs)]
        outputs = [detail["index"] for detail in interpreter.get_output_details()]

        def call():
            for index, array in pairs:
                interpreter.set_tensor(index, array)
            interpreter.invoke()
            for index in outputs:
                interpreter.get_tensor(index)

        return call

    def function(self):
        """Return setting, invoking and reading, by names."""
        interpreter, assigned, read = self._interpreter, [], []

        def call(inputs):
            if not assigned or any(inputs[name].shape != shape for name, _, shape in assigned):
                # The first call resolves the names, and brings the interpreter to these shapes.
                assigned[:] = [(name, index, array.shape) for name, index, array in self._assign(inputs)]
                names = self._names(interpreter.get_output_details(), "output")
                read[:] = [(name, detail["index"]) for name, detail in names.items()]
            for name, index, _ in assigned:
                interpreter.set_tensor(index, inputs[name])
            interpreter.invoke()
            fetched = {index: interpreter.get_tensor(index) for index in {index for _, index in read}}
            values = {name: fetched[index] for name, index in read}
            if len(fetched) == 1:
                values[""] = next(iter(values.values()))
            return values

        return call

    def profile(self, inputs, calls):
        """Refuse: the Python interface gives no times of operators."""
        raise Fault("bad-job", "%s gives no operator times in Python" % self.figures.get("package", "LiteRT"))
