# SPDX-License-Identifier: Apache-2.0
"""Finds the training loop of an unmodified program, through torch's own hooks.

The first module that is called in training mode, with gradients, while there is an optimizer, is the model; the
monitor starts there, and the global module hook is removed.  A process without a training loop is left as it was.
"""

import os
import re
import sys
import warnings
import weakref

from flopmeter.guard import describe_error, guarded
from flopmeter.log import log_once

_MOST_CALLS = 100000  # of modules without a training loop, after which modules are ignored
_NO_OPTIMIZER_CALLS = 64  # of a module that gets gradients, after which it is a model although there is no optimizer
_WARNING = re.compile(r"Using `torch.compile\(module\)` when there are global hooks")


def _optimizer_exists(kind):
    """Whether an optimizer was created: torch then marks the step of its class."""
    return any(hasattr(each.step, "hooked") or _optimizer_exists(each) for each in kind.__subclasses__())


def _log(text):
    if os.environ.get("RANK", "0") == "0":
        log_once(text)


class Finder:
    """Looks at modules until a model is found, and at optimizers for a loop that is known by them alone."""

    def __init__(self, torch):
        self._torch = torch
        self._calls = 0
        self._optimizer_steps = 0  # for which no model was found
        self._candidate = None  # for a model, if there were an optimizer
        self._candidate_calls = 0
        self._gradient = None  # handle of the hook that shows whether it gets one
        self._modules = None
        self._filter = ("ignore", _WARNING, Warning, None, 0)
        self._callables = None  # hooks of a monitor that has no model, to which optimizer steps are passed on
        self._started = False
        # Torch does not allow one of these to be removed while it runs them: they go when a module is called.
        optimizers = sys.modules["torch.optim.optimizer"]
        self._optimizers = [
            optimizers.register_optimizer_step_pre_hook(self._optimizer_begins),
            optimizers.register_optimizer_step_post_hook(self._optimizer_ended),
        ]
        self.look_at_modules()

    @guarded
    def look_at_modules(self):
        """Look for a model from the next call of a module on."""
        if self._modules is not None:
            return
        self._calls = 0
        # A compiled model would warn about the hook before the hook can be removed.  filterwarnings() would repeat warnings
        # that the program has had once.
        warnings.filters.insert(0, self._filter)
        self._modules = self._torch.nn.modules.module.register_module_forward_pre_hook(self._module_called)

    def _ignore_modules(self):
        if self._modules is not None:
            self._modules.remove()
            self._modules = None
            if self._filter in warnings.filters:
                warnings.filters.remove(self._filter)

    def detach(self):
        """Leave the process alone, as far as torch allows it now."""
        self._ignore_modules()
        self._callables = None
        self._started = True

    @guarded
    def _module_called(self, module, args):
        if self._torch.compiler.is_compiling():
            return
        kwargs = sys._getframe(2).f_locals.get("kwargs")  # of the call: a global hook does not get them
        with self._torch._C.DisableTorchFunction():  # modes and parameters of the program do not see our reads
            self._look_at(module, args, kwargs)

    def _look_at(self, module, args, kwargs):
        self._calls += 1
        if self._calls > _MOST_CALLS:
            self._ignore_modules()
        # If optimizers step all the same, it is trained in evaluation mode.
        if not (module.training or self._optimizer_steps) or not self._torch.is_grad_enabled():
            return
        if isinstance(module, self._torch.jit.ScriptModule):
            return  # it takes no hooks
        if not any(each.requires_grad for each in module.parameters()):
            return
        if _optimizer_exists(self._torch.optim.Optimizer):
            self._start(module, args, kwargs)
        elif self._candidate is None:
            self._candidate = weakref.ref(module)
        elif self._candidate() is module:
            self._candidate_calls += 1
            if self._candidate_calls == _NO_OPTIMIZER_CALLS:
                trained = next(each for each in module.parameters() if each.requires_grad)
                self._gradient = trained.register_hook(self._gradient_came)
            elif self._candidate_calls > _NO_OPTIMIZER_CALLS and self._gradient is None:
                self._start(module, args, kwargs, has_optimizer=False)

    @guarded
    def _gradient_came(self, _gradient):
        if self._gradient is not None:
            self._gradient.remove()
            self._gradient = None

    @guarded
    def _optimizer_begins(self, optimizer, args, kwargs):
        if self._callables is not None:
            self._callables[0](optimizer, args, kwargs)

    @guarded
    def _optimizer_ended(self, optimizer, args, kwargs):
        if self._torch.compiler.is_compiling():
            return
        if self._callables is not None:
            self._callables[1](optimizer, args, kwargs)
        elif self._started:
            pass
        elif self._modules is None:  # ignored too early: it is a training loop after all
            self.look_at_modules()
        elif self._optimizer_steps:  # no module was called: the loop is known by its optimizer alone
            self._start(None, (), None)
        else:
            self._optimizer_steps += 1

    def _start(self, model, args, kwargs, has_optimizer=True):
        self._ignore_modules()
        while model is not None and self._optimizers:  # the monitor has its own hooks then
            self._optimizers.pop().remove()
        self._callables = None
        self._started = True
        try:
            from flopmeter.launcher import attach

            monitor = attach.start(model, self.look_at_modules, has_optimizer)
            if monitor is not None:
                self._callables = attach.report_start(monitor, model, args, kwargs)
        except ImportError as error:
            here = "Python {}.{}, torch {}".format(sys.version_info[0], sys.version_info[1], self._torch.__version__)
            _log("the command runs without a monitor on {}: {}".format(here, error))
        except Exception as error:
            _log("the command runs without a monitor: {}".format(str(error) if isinstance(error, ValueError) else describe_error(error)))


def install(torch):
    """Called after the import of torch."""
    if hasattr(sys.modules.get("torch.optim.optimizer"), "register_optimizer_step_post_hook"):
        Finder(torch)
    else:
        _log("torch {} has no hook for all optimizers; the command runs without a monitor".format(torch.__version__))
