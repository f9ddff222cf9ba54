# SPDX-License-Identifier: Apache-2.0
"""Start-up hook of ``flopmeter run``, first in PYTHONPATH: waits for torch to be imported, then lets ``detect.py``
look for a training loop.  Imports nothing of flopmeter before that, and runs the sitecustomize that it hides.

Kept to what every Python 3 understands: the command decides which one runs.
"""

import importlib.machinery
import importlib.util
import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))
_LAUNCHER = os.path.dirname(_HERE)
_PACKAGE = os.path.dirname(_LAUNCHER)


class _Loader:
    """The loader that Python found for torch, and a call when it is done."""

    def __init__(self, loader):
        self._loader = loader

    def __getattr__(self, name):
        return getattr(self._loader, name)

    def create_module(self, spec):
        return self._loader.create_module(spec)

    def exec_module(self, module):
        if _Torch in sys.meta_path:
            sys.meta_path.remove(_Torch)
        module.__spec__.loader = module.__loader__ = self._loader
        self._loader.exec_module(module)
        _look_for_a_loop()


class _Torch:
    """First on the meta path until torch is imported; a program may only ask for its spec."""

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name != "torch":
            return None
        for finder in sys.meta_path:
            ask = None if finder is cls else getattr(finder, "find_spec", None)
            spec = ask and ask(name, path, target)
            if spec is not None:
                if hasattr(spec.loader, "exec_module"):
                    spec.loader = _Loader(spec.loader)
                return spec
        return None


class _Package:
    """Last on the meta path: the package of the program that was run, if this Python has none."""

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name != "flopmeter":
            return None
        return importlib.machinery.PathFinder.find_spec(name, [os.path.dirname(_PACKAGE)])


def _look_for_a_loop():
    try:
        spec = importlib.util.spec_from_file_location("flopmeter_detect", os.path.join(_LAUNCHER, "detect.py"))
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        module.install()
    except Exception as error:  # the command must run as it would without flopmeter
        line = "flopmeter: the command runs without a monitor: {}: {}\n".format(type(error).__name__, error)
        try:
            if sys.stderr is not None:
                os.write(2, line.encode())
        except OSError:
            pass


def _run_the_hidden_one():
    """The module that Python would have imported as sitecustomize; its errors are reported as usual."""
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", sys.path)
    if spec is None or spec.loader is None:
        return
    module = importlib.util.module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != _HERE]
sys.meta_path.insert(0, _Torch)
sys.meta_path.append(_Package)
_run_the_hidden_one()
