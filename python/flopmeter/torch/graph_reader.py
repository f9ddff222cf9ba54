# SPDX-License-Identifier: Apache-2.0
"""Reads the calls of a graph that TorchInductor compiles, from the graph itself or from the text that its caches keep."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

_DEVICES = {"cpu": 0, "cuda": 1}
_OTHER_DEVICE = 20
_DTYPES = {
    "float64": "fp64",
    "float32": "fp32",
    "float16": "fp16",
    "bfloat16": "bf16",
    "int8": "int8",
    "uint8": "int8",
    "complex32": "fp16",
    "complex64": "fp32",
    "complex128": "fp64",
    "float4_e2m1fn_x2": "fp4",
}
# Abbreviations in the text of a graph (torch.fx.graph.dtype_abbrs).
_SHORT_DTYPES = {
    "f64": "float64",
    "f32": "float32",
    "f16": "float16",
    "bf16": "bfloat16",
    "i8": "int8",
    "u8": "uint8",
    "c32": "complex32",
    "c64": "complex64",
    "c128": "complex128",
    "f8e4m3fn": "float8_e4m3fn",
    "f8e5m2": "float8_e5m2",
    "f8e4m3fnuz": "float8_e4m3fnuz",
    "f8e5m2fnuz": "float8_e5m2fnuz",
    "f4e2m1fnx2": "float4_e2m1fn_x2",
}


class Node(NamedTuple):
    """A call in a graph."""

    name: str
    target: Any  # an operator of torch, or the name of a higher-order operator
    args: Sequence[Any]
    kwargs: dict[str, Any]
    module: str


class Ref(NamedTuple):
    """The result of a node.

    A value is a tensor (dtype, is complex, extents), an int, or the text of an expression, as extents are.
    """

    name: str
    value: Any
    device: int


class Graph(NamedTuple):
    """A graph as the compiler had it, or as its text states it."""

    inputs: list[Ref]
    nodes: list[tuple[Node, Ref, list[str]]]  # call, result, names of the nodes that it reads
    subgraphs: dict[str, Graph]


def _extent(value: Any) -> Any:
    return value if isinstance(value, int) else str(value.node.expr)


def _dtype(dtype: Any) -> tuple[str, bool]:
    name = str(dtype).rsplit(".", 1)[-1]
    return ("fp8" if name.startswith("float8") else _DTYPES.get(name, "other")), name.startswith("complex")


def _value(value: Any) -> Any:
    """A node's value: a tensor, an extent, or the first tensor of several results."""
    if isinstance(value, (tuple, list)):
        return next((_value(each) for each in value if each is not None), None)
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return (*_dtype(value.dtype), tuple(_extent(each) for each in value.shape))
    if isinstance(value, bool) or isinstance(value, int):
        return int(value)
    return _extent(value) if hasattr(value, "node") and hasattr(value.node, "expr") else None


def _device(value: Any) -> int:
    if isinstance(value, (tuple, list)):
        return next((_device(each) for each in value if each is not None), 0)
    device = getattr(value, "device", None)
    return 0 if device is None else _DEVICES.get(device.type, _OTHER_DEVICE)


def _module_of(node: Any) -> str:
    """The path of the module in the model that was compiled: "layers.0" from "L['self'].layers.0"."""
    stack = node.meta.get("nn_module_stack") or node.meta.get("fwd_nn_module_stack")
    if not stack:
        return ""
    path = list(stack.values())[-1][0]
    path = re.sub(r"_modules\['([^']*)'\]", r"\1", path)
    path = re.sub(r"^L\['[^']*'\]\.?|^L__self___?", "", path)
    return re.sub(r"\[(?:'([^']*)'|(\d+))\]", lambda found: f".{found[1] or found[2]}", path).strip(".")


def from_fx(gm: Any) -> Graph:
    """The calls of a graph module."""
    import torch

    refs: dict[Any, Ref] = {}
    inputs, nodes, subgraphs = [], [], {}
    for node in gm.graph.nodes:
        value = node.meta.get("val")
        refs[node] = Ref(node.name, _value(value), _device(value))
        if node.op == "placeholder":
            inputs.append(refs[node])
        elif node.op == "get_attr":
            child = getattr(gm, str(node.target), None)
            if isinstance(child, torch.fx.GraphModule):
                subgraphs[node.name] = from_fx(child)
            elif isinstance(child, torch.Tensor) and value is None:  # a frozen weight
                refs[node] = Ref(node.name, _value(child), _device(child))
        elif node.op == "call_function":
            args = torch.fx.node.map_arg(node.args, refs.__getitem__)
            kwargs = torch.fx.node.map_arg(node.kwargs, refs.__getitem__)
            call = Node(node.name, node.target, args, kwargs, _module_of(node))
            nodes.append((call, refs[node], [each.name for each in node.all_input_nodes]))
    return Graph(inputs, nodes, subgraphs)


_TENSOR_TEXT = re.compile(r'^(\w+)\[([^\]]*)\](?:\[[^\]]*\])?(\w+)?')


def _text_value(text: str) -> tuple[Any, int]:
    """Value and device of an annotation such as "f32[s33, 64][64, 1]cpu" or "Sym(s33)"."""
    if text.startswith("Sym("):
        inner = text[4:-1]
        return (int(inner) if inner.isdigit() else inner), 0
    found = _TENSOR_TEXT.match(text)
    if found is None:
        return None, 0
    extents = tuple(int(each) if each.strip().isdigit() else each.strip() for each in found[2].split(",") if each.strip())
    device = re.match(r"[a-z]*", found[3] or "cpu")[0]  # type: ignore[index]
    return (*_dtype(_SHORT_DTYPES.get(found[1], "other")), extents), _DEVICES.get(device, _OTHER_DEVICE)


def _dotted(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def _find_target(dotted: str) -> Any:
    """The operator that "torch.ops.aten.mm.default" names; for a higher-order operator the same object as in torch.fx."""
    import torch

    parts = dotted.split(".")
    if parts[:2] != ["torch", "ops"]:
        return None
    found: Any = torch.ops
    for part in parts[2:]:
        found = getattr(found, part)
    return found


def from_text(text: str) -> Graph:
    """The calls in the text that TorchInductor keeps of a graph."""
    tree = ast.parse(re.sub(r"\bclass <lambda>", "class GraphModule", text))  # a graph without a name
    classes = {each.name: each for each in ast.walk(tree) if isinstance(each, ast.ClassDef)}
    return _from_class(tree.body[0], classes)  # type: ignore[arg-type]


def _from_class(definition: ast.ClassDef, classes: dict[str, ast.ClassDef]) -> Graph:
    forward = next(each for each in definition.body if isinstance(each, ast.FunctionDef))
    refs: dict[str, Ref] = {}
    inputs, nodes, subgraphs = [], [], {}

    def annotated(name: str, annotation: ast.expr | None) -> Ref:
        text = annotation.value if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str) else ""
        refs[name] = Ref(name, *_text_value(text))
        return refs[name]

    def argument(node: ast.expr) -> Any:
        if isinstance(node, ast.Name):
            return refs.get(node.id)
        if isinstance(node, (ast.List, ast.Tuple)):
            return [argument(each) for each in node.elts]
        if isinstance(node, ast.Attribute):
            return _find_target(_dotted(node))
        try:
            return ast.literal_eval(node)
        except ValueError:
            return None

    for each in forward.args.args[1:]:
        inputs.append(annotated(each.arg, each.annotation))
    for line in forward.body:
        if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name):
            name, annotation, value = line.target.id, line.annotation, line.value
        elif isinstance(line, ast.Assign) and isinstance(line.targets[0], ast.Name) and len(line.targets) == 1:
            name, annotation, value = line.targets[0].id, None, line.value
        else:
            continue
        if isinstance(value, ast.Constant):  # "name = None" frees a value
            continue
        read = [each.id for each in ast.walk(value) if isinstance(each, ast.Name) and each.id in refs] if value else []
        result = annotated(name, annotation)
        if isinstance(value, ast.Attribute) and value.attr in classes:
            subgraphs[name] = _from_class(classes[value.attr], classes)
        elif isinstance(value, ast.Call):
            target = _find_target(_dotted(value.func))
            if target is not None:
                kwargs = {each.arg: argument(each.value) for each in value.keywords if each.arg}
                nodes.append((Node(name, target, [argument(each) for each in value.args], kwargs, ""), result, read))
                continue
        nodes.append((Node(name, None, [], {}, ""), result, read))
    return Graph(inputs, nodes, subgraphs)
