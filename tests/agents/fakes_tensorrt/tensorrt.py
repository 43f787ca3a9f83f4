"""A stand-in for TensorRT's Python package: y = 2 x. FAKE_TENSORRT is the version it plays; 8.2 goes by position."""

import ctypes
import enum
import os

import numpy

__version__ = os.environ.get("FAKE_TENSORRT", "10.3.0")
BY_NAME = not __version__.startswith("8.2")


class Logger:
    ERROR = 1

    def __init__(self, level):
        self.level = level


class NetworkDefinitionCreationFlag(enum.IntEnum):
    EXPLICIT_BATCH = 0


class BuilderFlag(enum.Enum):
    FP16 = 0
    INT8 = 1


class TensorIOMode(enum.Enum):
    INPUT = 0
    OUTPUT = 1


class IProfiler:
    pass


class DataType(enum.Enum):
    FLOAT = 0
    HALF = 1


class _Input:
    name = "x"

    def __init__(self, shape):
        self.shape = shape


class _Network:
    shape = ()
    num_inputs = 1

    def get_input(self, index):
        assert index == 0
        return _Input(self.shape)


class OnnxParser:
    num_errors = 1

    def __init__(self, network, logger):
        self._network = network

    def parse_from_file(self, path):
        with open(path) as file:
            text = file.read()
        self._network.shape = (-1, 4) if "dynamic" in text else (2, 4)
        return "broken" not in text

    def get_error(self, index):
        return "In node 0 (parseGraph): UNSUPPORTED_NODE"


class _Config:
    def __init__(self):
        self.flags, self.profiles = [], []

    def set_flag(self, flag):
        self.flags.append(flag)

    def add_optimization_profile(self, profile):
        self.profiles.append(profile)


class _Profile:
    def set_shape(self, name, low, best, high):
        assert low == best == high
        self.shape = best


class Builder:
    def __init__(self, logger):
        pass

    def create_network(self, flags):
        assert flags == 1
        return _Network()

    def create_builder_config(self):
        return _Config()

    def create_optimization_profile(self):
        return _Profile()

    def build_serialized_network(self, network, config):
        assert (-1 in network.shape) == bool(config.profiles)
        return b"plan " + ",".join(flag.name for flag in config.flags).encode()


class Runtime:
    def __init__(self, logger):
        pass

    def deserialize_cuda_engine(self, data):
        return _Engine() if data.startswith(b"plan") else None


class _Context:
    def __init__(self):
        self.shape, self.addresses, self.profiler = None, {}, None

    def _set(self, shape):
        self.shape = shape
        return len(shape) == 2 and shape[1] == 4

    def _execute(self, source, target):
        size = int(numpy.prod(self.shape))
        kind = ctypes.c_float * size
        numpy.ctypeslib.as_array(kind.from_address(target))[:] = 2 * numpy.ctypeslib.as_array(kind.from_address(source))
        if self.profiler:
            self.profiler.report_layer_time("double", 0.25)
        return True

    if BY_NAME:

        def set_input_shape(self, name, shape):
            return self._set(shape)

        def get_tensor_shape(self, name):
            return self.shape

        def set_tensor_address(self, name, address):
            self.addresses[name] = address
            return True

        def execute_async_v3(self, stream):
            return self._execute(self.addresses["x"], self.addresses["y"])

    else:

        def set_binding_shape(self, index, shape):
            return self._set(shape)

        def get_binding_shape(self, index):
            return self.shape

        def execute_async_v2(self, addresses, stream):
            return self._execute(*addresses)


class _Engine:
    def create_execution_context(self):
        return _Context()

    if BY_NAME:
        num_io_tensors = 2

        def get_tensor_name(self, index):
            return "xy"[index]

        def get_tensor_mode(self, name):
            return TensorIOMode.INPUT if name == "x" else TensorIOMode.OUTPUT

        def get_tensor_dtype(self, name):
            return DataType.FLOAT

    else:
        num_bindings = 2

        def get_binding_name(self, index):
            return "xy"[index]

        def binding_is_input(self, index):
            return index == 0

        def get_binding_dtype(self, index):
            return DataType.FLOAT
