# SPDX-License-Identifier: Apache-2.0
"""Counts compiled graphs, mostly of TorchInductor: their kernels may not pass the dispatcher.

When a graph is compiled, the calls in it are written down: operator, arguments with symbolic extents, pass, and module.
The list is kept on the compiled graph, so that TorchInductor's caches store it.  It holds plain Python values only: a
process without flopmeter can load it.  When the graph runs, its symbols get their values, and the calls are counted by the
catalog's rules.  For a graph from a cache that was written without flopmeter, the list comes from the text of the graph.
"""

from __future__ import annotations

import functools
import inspect
import math
import re
import weakref
from collections.abc import Iterable, Iterator, Sequence
from types import ModuleType
from typing import Any

from flopmeter import _flopmeter
from flopmeter.guard import describe_error
from flopmeter.log import log_once
from flopmeter.torch.graph_reader import Graph, Node, Ref, from_fx, from_text
from flopmeter.torch.imports import after_import

_ATTRIBUTE = "_flopmeter_calls"
_VERSION = 1
_BACKWARD, _RECOMPUTE = 1, 2  # FlopmeterPass
# Namespaces whose operators without a rule contain no matmul.
_FRAMEWORK = {"aten", "prims", "prim", "inductor", "_inductor_test", "c10d", "_c10d_functional", "higher_order", "rngprims", "fsdp"}
_FUNCTIONS = {
    "Mod": lambda a, b: a % b,
    "PythonMod": lambda a, b: a % b,
    "Max": max,
    "Min": min,
    "FloorDiv": lambda a, b: a // b,
    "CleanDiv": lambda a, b: a // b,
    "CeilDiv": lambda a, b: -(-a // b),
    "CeilToInt": math.ceil,
    "FloorToInt": math.floor,
    "ceiling": math.ceil,
    "floor": math.floor,
}

def _plain(value: Any) -> Any:
    """An argument as rules read it."""
    if isinstance(value, Ref):
        return value.value
    if isinstance(value, (list, tuple)):
        items = [_plain(each) for each in value]
        return items if items and all(isinstance(each, (int, str, tuple)) for each in items) else None
    if isinstance(value, int):
        return int(value)
    return str(value.node.expr) if hasattr(value, "node") and hasattr(value.node, "expr") else None


def _operator_args(target: Any, node: Node) -> tuple[list[Any], list[str]]:
    """The arguments in the order of the operator's schema, and the names of its parameters."""
    names = [each.name for each in target._schema.arguments]
    values = list(node.args) + [node.kwargs.get(each) for each in names[len(node.args) :]]
    return [_plain(each) for each in values], names


class _Calls:
    """Collects the calls of a graph and its subgraphs."""

    def __init__(self, backward: bool) -> None:
        self.rows: list[tuple[Any, ...]] = []
        self.open: set[str] = set()
        self._backward = backward

    def add_graph(self, graph: Graph, from_gradients: set[str]) -> None:
        """``from_gradients``: the inputs that are made from gradients.  What reads none of them recomputes the forward pass."""
        made = set(from_gradients)
        for node, result, read in graph.nodes:
            if not made.isdisjoint(read):
                made.add(node.name)
            step = None
            if self._backward:
                step = _BACKWARD if node.name in made else _RECOMPUTE
            self._add(graph, node, result, step, made)

    def _add(self, graph: Graph, node: Node, result: Ref, step: int | None, made: set[str]) -> None:
        target, args, kwargs = node.target, node.args, node.kwargs
        if target is None:
            return
        name = _higher_order_name(target)
        place = next((i for i, each in enumerate(args) if hasattr(each, "_schema")), None)
        if name is not None and place is not None:
            # One operator and its arguments: it changes them, has effects, or runs with a random state.
            self._add(graph, node._replace(target=args[place], args=args[place + 1 :]), result._replace(value=None), step, made)
        elif name == "invoke_subgraph":
            child = graph.subgraphs.get(getattr(args[0], "name", ""))
            if child is not None:
                passed = args[2:]
                self.add_graph(child, {into.name for into, each in zip(child.inputs, passed) if getattr(each, "name", None) in made})
        elif name in ("flex_attention", "flex_attention_backward"):
            mask = args[9 if name.endswith("backward") else 4] if len(args) > 4 else None
            self._row(f"higher_order::{name}", [*map(_plain, args[:3]), _block_mask(mask)], result, args[0], step, node.module)
        elif name in ("triton_kernel_wrapper_functional", "triton_kernel_wrapper_mutation"):
            self._add_triton(kwargs, result, step, node.module)
        elif name is not None:
            if any(self._multiplies(child) for key, child in graph.subgraphs.items() if key in _names(args)):
                self._row(f"higher_order::{name}", [], result, None, step, node.module)  # the number of runs is not known
        elif hasattr(target, "_schema") or hasattr(target, "default"):
            overload = target if hasattr(target, "_schema") else target.default
            operator = overload.name()
            if _flopmeter.has_rule(operator):
                values, names = _operator_args(overload, node)
                self._row(operator, values, result, next((each for each in args if isinstance(each, Ref)), None), step, node.module, names)
            elif operator.split("::")[0] not in _FRAMEWORK:
                self.open.add(operator)

    def _row(
        self, name: str, args: list[Any], result: Ref, first: Any, step: int | None, module: str, names: Iterable[str] = ()
    ) -> None:
        device = first.device if isinstance(first, Ref) else result.device
        self.rows.append((name, args, result.value, device, step, module, list(names)))

    def _add_triton(self, kwargs: dict[str, Any], result: Ref, step: int | None, module: str) -> None:
        from torch._higher_order_ops.triton_kernel_wrap import kernel_side_table

        kernel: Any = kernel_side_table.get_kernel(kwargs["kernel_idx"])
        function = kernel
        while hasattr(function, "fn"):
            function = function.fn
        name = f"{function.__module__}::{function.__name__}"
        if not _flopmeter.has_rule(name) and "dot(" not in str(getattr(kernel, "src", "")):
            return
        values = kwargs.get("kwargs") or {}
        self._row(name, [_plain(values.get(each)) for each in getattr(kernel, "arg_names", values)], result, None, step, module)

    def _multiplies(self, graph: Graph) -> bool:
        inner = _Calls(False)
        inner.add_graph(graph, set())
        return bool(inner.rows)


def _names(args: Any) -> Iterator[str]:
    for each in args:
        if isinstance(each, Ref):
            yield each.name
        elif isinstance(each, (list, tuple)):
            yield from _names(each)


def _higher_order_name(target: Any) -> str | None:
    return target.name() if hasattr(target, "name") and not hasattr(target, "_schema") and not hasattr(target, "overloads") else None


def _block_mask(mask: Any) -> int | None:
    """1 if a block mask may exclude pairs: it has more than the single block that means no mask."""
    blocks = mask[2] if isinstance(mask, (list, tuple)) and len(mask) > 2 else None
    value = blocks.value if isinstance(blocks, Ref) else None
    return None if isinstance(value, tuple) and value[2] == (1, 1, 1) else 1


def calls_of(graph: Graph, backward: bool) -> dict[str, Any]:
    """The calls of a graph in plain values, with the inputs that give symbols their values."""
    calls = _Calls(backward)
    calls.add_graph(graph, {each.name for each in graph.inputs if each.name.startswith("tangents")} if backward else set())
    symbols: dict[str, tuple[int, int | None]] = {}
    for index, ref in enumerate(graph.inputs):
        if isinstance(ref.value, str) and ref.value.isidentifier():
            symbols.setdefault(ref.value, (index, None))
        elif isinstance(ref.value, tuple):
            for place, extent in enumerate(ref.value[2]):
                if isinstance(extent, str) and extent.isidentifier():
                    symbols.setdefault(extent, (index, place))
    return {"version": _VERSION, "symbols": symbols, "rows": calls.rows, "open": sorted(calls.open)}


def _evaluate(value: Any, symbols: dict[str, int]) -> Any:
    if isinstance(value, str):
        return int(eval(value, {"__builtins__": {}}, {**_FUNCTIONS, **symbols}))  # written by torch
    if isinstance(value, tuple):
        return (value[0], value[1], [_evaluate(each, symbols) for each in value[2]])
    return [_evaluate(each, symbols) for each in value] if isinstance(value, list) else value


def _evaluated(row: tuple[Any, ...], symbols: dict[str, int]) -> tuple[Any, ...]:
    name, args, result, *rest = row
    try:
        return (name, [_evaluate(each, symbols) for each in args], _evaluate(result, symbols), *rest)
    except Exception:  # a symbol whose value only the device knows: without arguments the call is unsupported
        return (name, [], None, *rest)


class GraphCounter:
    """Counts the calls of one compiled graph."""

    def __init__(self, calls: dict[str, Any]) -> None:
        self._rows = calls["rows"]
        used = set(re.findall(r"[A-Za-z_]\w*", repr([row[1:3] for row in self._rows])))
        self._symbols = {name: place for name, place in calls["symbols"].items() if name in used}
        self._known: dict[tuple[int, ...], Any] = {}
        for name in calls["open"]:
            _flopmeter.open_op(name)
        self.constant = None if self._symbols else self.calls_for(())  # the calls of a graph without symbols

    def calls_for(self, inputs: Sequence[Any]) -> Any:
        """The calls with the extents of these inputs."""
        key = tuple(int(inputs[at] if place is None else inputs[at].shape[place]) for at, place in self._symbols.values())
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= 1024:
                self._known.clear()
            symbols = dict(zip(self._symbols, key))
            found = self._known[key] = _flopmeter.GraphCalls([_evaluated(row, symbols) for row in self._rows])
        return found


class _Unreadable:
    """The counter of a graph with unknown calls."""

    def __init__(self) -> None:
        self.constant = self

    def count(self) -> None:
        _flopmeter.add_unsupported("torch._inductor::compiled_graph")


def _counter_of(graph: Any) -> Any:
    """The counter of a compiled graph, made when it first runs."""
    calls = graph.__dict__.get(_ATTRIBUTE)
    try:
        if calls is None or calls["version"] != _VERSION:
            backward = bool((getattr(graph, "fx_kwargs", None) or {}).get("is_backward"))
            calls = calls_of(from_text(graph.inductor_post_grad_graph_str), backward)
        return GraphCounter(calls)
    except Exception as error:
        log_once(f"a compiled graph cannot be counted: {describe_error(error)}")
        return _Unreadable()


def _patch_compiler(module: ModuleType) -> None:
    original = module.fx_codegen_and_compile

    @functools.wraps(original)
    def fx_codegen_and_compile(gm: Any, *args: Any, **kwargs: Any) -> Any:
        calls = None
        try:
            calls = calls_of(from_fx(gm), bool(kwargs.get("is_backward")))
        except Exception as error:
            log_once(f"a compiled graph is counted by its text: {describe_error(error)}")
        result = original(gm, *args, **kwargs)
        if calls is not None:
            setattr(result, _ATTRIBUTE, calls)
        return result

    module.fx_codegen_and_compile = fx_codegen_and_compile  # type: ignore[attr-defined]


def _patch_graphs(module: ModuleType) -> None:
    kind = getattr(module, "CompiledFxGraph", None)
    if kind is None or hasattr(kind.__call__, "__wrapped__") or kind.__module__ != module.__name__:
        return
    counters: dict[int, Any] = {}  # by the id of the compiled graph, which has no hash
    original, begin, end = kind.__call__, _flopmeter.begin_call, _flopmeter.end_call

    @functools.wraps(original)
    def __call__(self: Any, inputs: Any) -> Any:
        if not begin(True):
            return original(self, inputs)
        try:
            counter = counters.get(id(self))
            if counter is None:
                counter = counters[id(self)] = _counter_of(self)
                weakref.finalize(self, counters.pop, id(self), None)
            calls = counter.constant or counter.calls_for(inputs)  # before the call, which empties the list
            result = original(self, inputs)
        finally:
            end()
        calls.count()
        return result

    kind.__call__ = __call__


def _count_recomputation(compiler: Any) -> Any:
    """The compiler of a backend other than TorchInductor.  Its graphs pass the dispatcher, which does not see what recomputes:
    a backward graph that recomputes is counted by its calls."""

    @functools.wraps(compiler)
    def compile_backward(gm: Any, *args: Any, **kwargs: Any) -> Any:
        calls = None
        try:
            calls = calls_of(from_fx(gm), backward=True)
        except Exception as error:
            log_once(f"recomputation in a compiled graph counts as backward: {describe_error(error)}")
        compiled = compiler(gm, *args, **kwargs)
        if calls is None or all(row[4] != _RECOMPUTE for row in calls["rows"]):
            return compiled
        counter, is_boxed = GraphCounter(calls), hasattr(compiled, "_boxed_call")

        def run(*inputs: Any) -> Any:
            if not _flopmeter.begin_call(True):
                return compiled(*inputs)
            try:
                found = counter.constant or counter.calls_for(inputs[0] if is_boxed else inputs)
                result = compiled(*inputs)
            finally:
                _flopmeter.end_call()
            found.count()
            return result

        if is_boxed:
            run._boxed_call = True  # type: ignore[attr-defined]
        return run

    return compile_backward


def _patch_backends(module: ModuleType) -> None:
    """Other backends for training: they give AOTAutograd a compiler for backward graphs."""
    original = module.AotAutograd.__init__

    @functools.wraps(original)
    def __init__(self: Any, **kwargs: Any) -> None:
        compiler = kwargs.get("bw_compiler") or kwargs.get("fw_compiler")
        if inspect.isfunction(compiler) and not compiler.__module__.startswith("torch._inductor"):
            kwargs["bw_compiler"] = _count_recomputation(compiler)
        original(self, **kwargs)

    module.AotAutograd.__init__ = __init__


def _patch_packages(module: ModuleType) -> None:
    """Models of AOTInductor: libraries, whose work is not known."""
    kind = getattr(module, "AOTICompiledModel", None)
    if kind is None or hasattr(kind.__call__, "__wrapped__"):
        return
    original = kind.__call__

    @functools.wraps(original)
    def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:
        counted = _flopmeter.begin_call(False)
        try:
            result = original(self, *args, **kwargs)
        finally:
            if counted:
                _flopmeter.end_call()
        if counted:
            _flopmeter.add_unsupported("torch._inductor::AOTICompiledModel")
        return result

    kind.__call__ = __call__


def _report_compilations(module: ModuleType) -> None:
    """Steps in which Dynamo compiles are tagged."""
    handler = module.callback_handler
    clear = handler.clear

    def register() -> None:
        handler.register_start_callback(lambda *_: _flopmeter.compilation_began())

    def clear_others() -> None:
        clear()
        register()

    handler.clear = clear_others  # torch._dynamo.reset() calls it
    register()


def install() -> None:
    """Count compiled graphs from now on."""
    after_import("torch._dynamo.callback", _report_compilations)
    after_import("torch._inductor.compile_fx", _patch_compiler)
    after_import("torch._inductor.output_code", _patch_graphs)
    after_import("torch._inductor.codecache", _patch_graphs)  # before torch 2.6
    after_import("torch._inductor.package.package", _patch_packages)
    after_import("torch._dynamo.backends.common", _patch_backends)
