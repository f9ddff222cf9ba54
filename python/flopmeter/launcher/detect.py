# SPDX-License-Identifier: Apache-2.0
"""Finds the training loop of a process that knows nothing of flopmeter, through torch's own hooks.

The first module that is called in training mode, with gradients, while there is an optimizer, is the model; the
monitor starts there, and the global module hook goes.  A process that never gets there leaves no trace.
"""

import os
import sys
import warnings
import weakref

_MOST_CALLS = 100000  # of modules without a training loop, after which the modules are left alone
_LONE_CALLS = 64  # of a module that gets gradients, after which it is a model although there is no optimizer
_WARNING = "Using `torch.compile\\(module\\)` when there are global hooks"


def _optimizer_exists(kind):
    """Whether an optimizer was made: torch marks the step of its class then."""
    return any(hasattr(each.step, "hooked") or _optimizer_exists(each) for each in kind.__subclasses__())


def _say(text):
    if os.environ.get("RANK", "0") == "0":
        sys.stderr.write("flopmeter: {}\n".format(text))


class _LoaderNote:
    """Whether a loader of torch was asked for a batch."""

    def __init__(self):
        self.seen = False
        self._kind = getattr(sys.modules.get("torch.utils.data.dataloader"), "_BaseDataLoaderIter", None)
        if self._kind is not None:
            self._original = original = self._kind.__next__

            def fetch(iterator):
                self.seen = True
                return original(iterator)

            self._kind.__next__ = fetch

    def restore(self):
        if self._kind is not None:
            self._kind.__next__ = self._original
            self._kind = None


class Finder:
    """Watches modules until a model is found, and optimizers for the watcher of its loop."""

    def __init__(self, torch):
        self._torch = torch
        self._calls = 0
        self._orphans = 0  # optimizer steps for which no model was found
        self._candidate = None  # for a model, had it an optimizer
        self._lone_calls = 0  # of it
        self._gradient = None  # handle of the hook that tells whether it gets one
        self._modules = None
        self._filter = None
        self._watcher = None
        self._hooks = None  # the watcher's
        self._stopped = False
        self._loader = _LoaderNote()
        # Torch does not let one of these take itself or another away: they go when a module is called.
        optimizers = sys.modules["torch.optim.optimizer"]
        self._optimizers = [
            optimizers.register_optimizer_step_pre_hook(self._optimizer_begins),
            optimizers.register_optimizer_step_post_hook(self._optimizer_ended),
        ]
        self.watch_modules()

    def watch_modules(self):
        """Look for a model from the next call of a module on."""
        if self._modules is not None:
            return
        self._calls = 0
        # A compiled model would warn of the hook before the hook can take itself away.
        warnings.filterwarnings("ignore", message=_WARNING)
        self._filter = warnings.filters[0]
        self._modules = self._torch.nn.modules.module.register_module_forward_pre_hook(self._module_called)

    def _leave_modules(self):
        if self._modules is not None:
            self._modules.remove()
            self._modules = None
            if self._filter in warnings.filters:
                warnings.filters.remove(self._filter)

    def _module_called(self, module, args):
        if self._torch.compiler.is_compiling():
            return
        self._calls += 1
        if self._calls > _MOST_CALLS:
            self._leave_modules()
        # Where optimizers step all the same, it is trained in evaluation mode.
        if not (module.training or self._orphans) or not self._torch.is_grad_enabled():
            return
        if isinstance(module, self._torch.jit.ScriptModule):
            return  # it takes no hooks
        if not any(each.requires_grad for each in module.parameters()):
            return
        if _optimizer_exists(self._torch.optim.Optimizer):
            self._start(module, args, sys._getframe(1).f_locals.get("kwargs"))  # a global hook is not given them
        elif self._candidate is None:
            self._candidate = weakref.ref(module)
        elif self._candidate() is module:
            self._lone_calls += 1
            if self._lone_calls == _LONE_CALLS:
                trained = next(each for each in module.parameters() if each.requires_grad)
                self._gradient = trained.register_hook(self._gradient_came)
            elif self._lone_calls > _LONE_CALLS and self._gradient is None:
                self._start(module, args, sys._getframe(1).f_locals.get("kwargs"), lone=True)

    def _gradient_came(self, _gradient):
        if self._gradient is not None:
            self._gradient.remove()
            self._gradient = None

    def _optimizer_begins(self, optimizer, args, kwargs):
        if self._hooks is not None:
            self._hooks._optimizer_begins(optimizer, args, kwargs)

    def _optimizer_ended(self, optimizer, args, kwargs):
        if self._torch.compiler.is_compiling():
            return
        if self._hooks is not None:
            self._hooks._optimizer_ended(optimizer, args, kwargs)
        elif self._stopped:
            pass
        elif self._modules is None:  # given up too early: it is a training loop after all
            self.watch_modules()
        elif self._orphans:  # no module was called: the loop is known by its optimizer alone
            self._start(None, (), None)
        else:
            self._orphans += 1

    def _start(self, model, args, kwargs, lone=False):
        self._leave_modules()
        self._loader.restore()
        while model is not None and self._optimizers:  # the watcher has hooks of its own then
            self._optimizers.pop().remove()
        self._watcher = self._hooks = None
        self._stopped = True
        try:
            from flopmeter.launcher import attach

            self._watcher = attach.start(model, args, kwargs, self.watch_modules, self._loader.seen, lone)
            self._hooks = self._watcher._hooks if self._watcher is not None and model is None else None
        except ImportError as error:
            here = "Python {}.{}, torch {}".format(sys.version_info[0], sys.version_info[1], self._torch.__version__)
            _say("the command runs unwatched by {}: {}".format(here, error))
        except Exception as error:
            _say("the command runs unwatched: {}: {}".format(type(error).__name__, error))


def install():
    """Called when torch has just been imported."""
    torch = sys.modules["torch"]
    if hasattr(sys.modules.get("torch.optim.optimizer"), "register_optimizer_step_post_hook"):
        Finder(torch)
    else:
        _say("torch {} has no hook for all optimizers; the command runs unwatched".format(torch.__version__))
