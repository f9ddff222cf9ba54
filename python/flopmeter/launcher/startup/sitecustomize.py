# SPDX-License-Identifier: Apache-2.0
"""Start-up hook of ``flopmeter run`` and ``flopmeter env``, first in PYTHONPATH: calls a function of flopmeter after the import of
each module in its table.  Imports nothing of flopmeter before that, and runs the sitecustomize that it hides.

Kept to what every Python 3 understands: the command decides which one runs.
"""

import atexit
import importlib
import importlib.machinery
import importlib.util
import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))
_PACKAGE = os.path.dirname(os.path.dirname(_HERE))

# After the import of the module on the left, the function on the right is called with it.  It replaces what it needs, or
# raises if the module is not as expected: the module then stays as it is, and the tracker of torch's hooks remains.
AFTER_IMPORT = {
    "torch": ("flopmeter.launcher.detect", "install"),
    "megatron.training.training": ("flopmeter.integrations.megatron_training", "install"),
    "megatron.bridge.training.callbacks": ("flopmeter.integrations.megatron_bridge", "install"),
    "flagscale.train.perf_monitor.hooks": ("flopmeter.integrations.flagscale", "install"),
}


class _Loader:
    """The loader that Python found for a module, and a call when it is done."""

    def __init__(self, loader):
        self._loader = loader

    def __getattr__(self, name):
        return getattr(self._loader, name)

    def create_module(self, spec):
        return self._loader.create_module(spec)

    def exec_module(self, module):
        module.__spec__.loader = module.__loader__ = self._loader
        self._loader.exec_module(module)
        _after_import(module)


class _Table:
    """First on the meta path; a program may only ask for a spec, and may import a module again."""

    _asking = set()  # type: set  # other finders, which may ask this one in turn

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name != "flopmeter" and name not in AFTER_IMPORT or name in cls._asking:
            return None
        cls._asking.add(name)
        try:
            spec = cls._found(name, path, target)
            if name == "flopmeter":
                return spec if spec is not None and spec.has_location else cls._own_package()
            if spec is not None and hasattr(spec.loader, "exec_module"):
                spec.loader = _Loader(spec.loader)
            return spec
        finally:
            cls._asking.discard(name)

    @classmethod
    def _found(cls, name, path, target):
        for finder in sys.meta_path:
            ask = None if finder is cls else getattr(finder, "find_spec", None)
            spec = ask and ask(name, path, target)
            if spec is not None:
                return spec
        return None

    @staticmethod
    def _own_package():
        """The package of the program that was run: this Python has none, or only a folder of that name."""
        return importlib.machinery.PathFinder.find_spec("flopmeter", [os.path.dirname(_PACKAGE)])


def _require_flopmeter():
    """ImportError if the program has another module of that name, which must not run."""
    spec = importlib.util.find_spec("flopmeter")
    folders = spec.submodule_search_locations or []
    if not any(os.path.isdir(os.path.join(folder, "launcher")) for folder in folders):
        raise ImportError("the program has another module of that name: {}".format(spec.origin))


def _after_import(module):
    name = module.__name__
    try:
        owner, function = AFTER_IMPORT.pop(name)  # once, also if the program loads the module again
        _require_flopmeter()
        getattr(importlib.import_module(owner), function)(module)
    except Exception as error:  # the command must run as it would without flopmeter
        if name == "torch":
            _log("the command runs without a monitor: {}: {}".format(type(error).__name__, error))
        else:
            _log("{} is monitored by the hooks of torch alone: {}".format(name, error))


def _log(text):
    """To stderr, on rank 0."""
    try:
        if os.environ.get("RANK", "0") == "0" and sys.stderr is not None and os.get_inheritable(2):
            os.write(2, "flopmeter: {}\n".format(text).encode("utf-8", "replace"))
    except OSError:
        pass


def _log_if_nothing_was_recorded():
    """Only in the process that ``flopmeter run`` became, so that a command logs it once."""
    started, _, directory = os.environ.get("FLOPMETER_STARTED", "").partition(" ")
    if started != str(os.getpid()):
        return
    try:
        recorded = any(name.startswith("records_") for name in os.listdir(directory))
    except OSError:
        recorded = False
    if recorded:
        return
    if "flopmeter.launcher.attach" in sys.modules:  # a monitor ran
        _log("nothing was recorded in {}".format(directory))
    else:
        _log("nothing was recorded: no training step of torch was seen")


def _run_the_hidden_one():
    """The module that Python would have imported as sitecustomize; its errors are reported as usual."""
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", sys.path)
    if spec is None or spec.loader is None:
        return
    module = importlib.util.module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != _HERE]
sys.meta_path.insert(0, _Table)
atexit.register(_log_if_nothing_was_recorded)
_run_the_hidden_one()
