"""TensorRT's Python package, versions 8 to 10, with the CUDA runtime through ctypes: no pycuda is needed."""

import ctypes
import os

from ..home import Fault

LIBRARIES = ("libcudart.so", "libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0", "libcudart.so.10.2")
PLACES = ("", "/usr/local/cuda/lib64/")
TO_DEVICE, TO_HOST = 1, 2
MAX_OPS = 200
# By the names of TensorRT's DataType. Its own nptype() asks numpy for ``bool``, which numpy 1.24 no longer has (seen
# with TensorRT 8.5 of JetPack 5: https://github.com/NVIDIA/TensorRT/issues/2567).
DTYPES = {
    "FLOAT": "float32",
    "HALF": "float16",
    "INT8": "int8",
    "UINT8": "uint8",
    "INT32": "int32",
    "INT64": "int64",
    "BOOL": "bool",
}


def load():
    """Return the bindings. Raises ImportError where the package or the CUDA runtime is missing."""
    import tensorrt

    return Bindings(tensorrt, Cuda(open_cudart()))


def open_cudart():
    """Return the CUDA runtime's library."""
    for name in [place + name for place in PLACES for name in LIBRARIES]:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    raise ImportError("tensorrt is installed, the CUDA runtime (libcudart) cannot be loaded")


class Cuda:
    """The few calls of the CUDA runtime that a run needs."""

    def __init__(self, library):
        self._library = library

    def _do(self, name, *arguments):
        code = getattr(self._library, name)(*arguments)
        if code:
            kind = "out-of-memory" if code == 2 else "runtime-error"
            raise Fault(kind, "%s failed with CUDA error %d" % (name, code))

    def stream(self):
        """Return a new stream's handle."""
        handle = ctypes.c_void_p()
        self._do("cudaStreamCreate", ctypes.byref(handle))
        return handle.value

    def synchronise(self, stream):
        """Wait for a stream."""
        self._do("cudaStreamSynchronize", ctypes.c_void_p(stream))

    def device_memory(self, size):
        """Return the address of new memory on the device."""
        address = ctypes.c_void_p()
        self._do("cudaMalloc", ctypes.byref(address), ctypes.c_size_t(max(1, size)))
        return address.value

    def pinned(self, size):
        """Return the address of new page-locked memory on the host."""
        address = ctypes.c_void_p()
        self._do("cudaHostAlloc", ctypes.byref(address), ctypes.c_size_t(max(1, size)), ctypes.c_uint(0))
        return address.value

    def copy(self, target, source, size, kind, stream):
        """Queue a copy."""
        pointers = (ctypes.c_void_p(target), ctypes.c_void_p(source), ctypes.c_size_t(size))
        self._do("cudaMemcpyAsync", *(pointers + (ctypes.c_int(kind), ctypes.c_void_p(stream))))

    def used(self):
        """Return how many bytes of the device's memory are in use, by anyone."""
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self._do("cudaMemGetInfo", ctypes.byref(free), ctypes.byref(total))
        return total.value - free.value


class Bindings:
    """The package."""

    def __init__(self, package, cuda):
        self.package = package
        self.cuda = cuda
        self.version = package.__version__
        self.logger = package.Logger(package.Logger.ERROR)

    def build(self, model, target, flags, shapes):
        """Build an engine from an ONNX file and write it. Raises Fault model-rejected with the parser's words."""
        trt = self.package
        builder = trt.Builder(self.logger)
        network = builder.create_network(1 << int(trt.NetworkDefinitionCreationFlag.EXPLICIT_BATCH))
        parser = trt.OnnxParser(network, self.logger)
        # From the file, not from its bytes: external data is found beside it.
        if not parser.parse_from_file(model):
            said = "; ".join(str(parser.get_error(index)) for index in range(min(5, parser.num_errors)))
            raise Fault("model-rejected", "TensorRT cannot read the model: " + said)
        config = builder.create_builder_config()
        for name in flags:
            if not hasattr(trt.BuilderFlag, name.upper()):
                raise Fault("bad-job", "TensorRT's Python package has no flag %s; trtexec may" % name)
            config.set_flag(getattr(trt.BuilderFlag, name.upper()))
        profile = builder.create_optimization_profile()
        free = [value for value in map(network.get_input, range(network.num_inputs)) if -1 in tuple(value.shape)]
        unbound = [value.name for value in free if value.name not in shapes]
        if unbound:
            raise Fault("model-rejected", "nobody bound the free dimensions of input(s) %s" % ", ".join(unbound))
        for value in free:
            profile.set_shape(value.name, *([tuple(shapes[value.name])] * 3))
        if free:
            config.add_optimization_profile(profile)
        plan = builder.build_serialized_network(network, config)
        if plan is None:
            raise Fault("model-rejected", "TensorRT built no engine")
        with open(target, "wb") as file:
            file.write(plan)
            file.flush()
            os.fsync(file.fileno())

    def open_engine(self, path):
        """Load an engine."""
        before = self.cuda.used()
        with open(path, "rb") as file:
            engine = self.package.Runtime(self.logger).deserialize_cuda_engine(file.read())
        if engine is None:
            raise Fault("model-rejected", "this TensorRT (%s) cannot load the engine" % self.version)
        return Engine(self.package, self.cuda, engine, before)


class Tensor:
    """One input or output with its memory on both sides."""

    def __init__(self, name, index, is_input, dtype):
        self.name, self.index, self.is_input, self.dtype = name, index, is_input, dtype

    def allocate(self, cuda, shape):
        """Take memory for a shape."""
        import numpy

        size = int(numpy.prod(shape, dtype=numpy.int64)) * numpy.dtype(self.dtype).itemsize
        self.bytes = size
        self.device, self.host = cuda.device_memory(size), cuda.pinned(size)
        view = (ctypes.c_char * max(1, size)).from_address(self.host)
        self.array = numpy.frombuffer(view, dtype=self.dtype, count=int(numpy.prod(shape))).reshape(shape)


class Engine:
    """A loaded engine with one execution context. Tensors go by name from TensorRT 8.5 on, by position before."""

    def __init__(self, package, cuda, engine, used_before):
        self._package, self._cuda, self._engine = package, cuda, engine
        self._used_before = used_before
        self._named = hasattr(engine, "num_io_tensors")
        self._context = engine.create_execution_context()
        self._stream = cuda.stream()
        self._tensors = []
        for index in range(engine.num_io_tensors if self._named else engine.num_bindings):
            if self._named:
                name = engine.get_tensor_name(index)
                is_input = engine.get_tensor_mode(name) == package.TensorIOMode.INPUT
                dtype = engine.get_tensor_dtype(name)
            else:
                name = engine.get_binding_name(index)
                is_input, dtype = engine.binding_is_input(index), engine.get_binding_dtype(index)
            if dtype.name not in DTYPES:
                raise Fault("model-rejected", "numpy has no type for %s of %s" % (dtype.name, name))
            self._tensors.append(Tensor(name, index, is_input, DTYPES[dtype.name]))

    def bind(self, inputs):
        """Return the call: inputs to the device, execution, outputs back, synchronised."""
        missing = [tensor.name for tensor in self._tensors if tensor.is_input and tensor.name not in inputs]
        if missing:
            raise Fault("input-rejected", "no array was given for the input(s) %s" % ", ".join(missing))
        for tensor in self._tensors:
            if tensor.is_input:
                self._set_shape(tensor, inputs[tensor.name].shape)
                tensor.allocate(self._cuda, inputs[tensor.name].shape)
                tensor.array[...] = inputs[tensor.name]
        for tensor in self._tensors:
            if not tensor.is_input:
                tensor.allocate(self._cuda, self._shape(tensor))
            if self._named:
                self._context.set_tensor_address(tensor.name, tensor.device)
        execute = self._executor()
        copy, synchronise, stream = self._cuda.copy, self._cuda.synchronise, self._stream
        given = [(t.device, t.host, t.bytes, TO_DEVICE, stream) for t in self._tensors if t.is_input]
        asked = [(t.host, t.device, t.bytes, TO_HOST, stream) for t in self._tensors if not t.is_input]

        def call():
            for arguments in given:
                copy(*arguments)
            if not execute():
                raise Fault("runtime-error", "TensorRT refused to execute")
            for arguments in asked:
                copy(*arguments)
            synchronise(stream)

        return call

    def _set_shape(self, tensor, shape):
        if self._named:
            accepted = self._context.set_input_shape(tensor.name, tuple(shape))
        else:
            accepted = self._context.set_binding_shape(tensor.index, tuple(shape))
        if not accepted:
            raise Fault("input-rejected", "the engine does not take %s of shape %s" % (tensor.name, tuple(shape)))

    def _shape(self, tensor):
        if self._named:
            return tuple(self._context.get_tensor_shape(tensor.name))
        return tuple(self._context.get_binding_shape(tensor.index))

    def _executor(self):
        context, stream = self._context, self._stream
        if self._named:
            return lambda: context.execute_async_v3(stream)
        addresses = [tensor.device for tensor in self._tensors]
        return lambda: context.execute_async_v2(addresses, stream)

    def outputs(self):
        """Return copies of the last call's outputs by name."""
        return {tensor.name: tensor.array.copy() for tensor in self._tensors if not tensor.is_input}

    def profile(self, inputs, calls):
        """Return rows of ``OpRow``, the slowest layers first."""
        totals = {}

        class Profiler(self._package.IProfiler):
            def report_layer_time(self, name, milliseconds):
                totals[name] = totals.get(name, 0.0) + milliseconds / 1e3

        call = self.bind(inputs)
        self._context.profiler = profiler = Profiler()
        for _ in range(calls):
            call()
        del profiler
        rows = [
            {"op": "layer", "name": name[:2000], "provider": "tensorrt", "calls": calls, "total_s": total}
            for name, total in totals.items()
        ]
        return sorted(rows, key=lambda row: -row["total_s"])[:MAX_OPS]

    def device_bytes(self):
        """Return what the device's memory in use has grown by since before the engine was loaded, bytes."""
        return max(0, self._cuda.used() - self._used_before)
