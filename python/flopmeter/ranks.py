# SPDX-License-Identifier: Apache-2.0
"""The place of this process among its ranks, and how process groups and device meshes split the work."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from flopmeter import _flopmeter
from flopmeter.log import log_once
from flopmeter.torch import as_module, loaded_torch
from flopmeter.torch.adapter import torch_adapter

# Usual names of the dimensions of a device mesh, and Megatron's names of its groups.
_DIMENSIONS = {"tp": "tensor", "pp": "pipeline", "cp": "context", "sp": "context", "ep": "expert"}
_GROUPS = {
    **{f"mesh_{name}": split for name, split in _DIMENSIONS.items()},
    "TENSOR_MODEL_PARALLEL_GROUP": "tensor",
    "PIPELINE_MODEL_PARALLEL_GROUP": "pipeline",
    "CONTEXT_PARALLEL_GROUP": "context",
    "EXPERT_MODEL_PARALLEL_GROUP": "expert",
}


def _described(distributed: Any) -> Iterator[tuple[str, Any]]:
    """The groups of this rank that have a description; torch below 2.3 does not describe its groups."""
    state = getattr(distributed.distributed_c10d, "_world", None)
    for group in list(getattr(state, "pg_map", ())):
        if split := _GROUPS.get(getattr(group, "group_desc", "")):
            yield split, group


def _of_meshes(module: Any) -> Iterator[tuple[str, Any]]:
    """The groups of the meshes of the parameters: a mesh over the whole world has no separate group."""
    meshes = {id(mesh): mesh for p in module.parameters() if (mesh := getattr(p, "device_mesh", None)) is not None}
    for mesh in meshes.values():
        for name in mesh.mesh_dim_names or ():
            if split := _DIMENSIONS.get(name):
                yield split, mesh.get_group(name)


def _ranks_by_split(distributed: Any, found: Iterator[tuple[str, Any]]) -> dict[str, list[int]]:
    """The ranks that share each split; a split that several groups describe differently is not known."""
    known: dict[str, list[int]] = {}
    unclear = set()
    for split, group in found:
        ranks = distributed.get_process_group_ranks(group)
        if known.setdefault(split, ranks) != ranks:
            unclear.add(split)
    return {split: ranks for split, ranks in known.items() if split not in unclear}


def _learn_layout(world: _flopmeter.World, distributed: Any, module: Any, known: dict[str, int]) -> None:
    """Fill in how the work is split; a split without a description stays 1.

    ``known``: sizes from the options.  If there are any, other splits are ignored: a process may hold groups that this
    model does not use.
    """
    described = _ranks_by_split(distributed, _described(distributed))
    if module is not None:
        described |= _ranks_by_split(distributed, _of_meshes(module))
    for split, ranks in described.items():
        if known and known.get(split) != len(ranks):
            continue
        setattr(world, f"{split}_parallel", len(ranks))
        if split == "tensor":
            world.tensor_rank = ranks.index(distributed.get_rank())
        if split == "pipeline" and len(ranks) > 1:
            world.pipeline_stride = ranks[1] - ranks[0]


def initialized_distributed() -> Any:
    """torch.distributed, if it is initialized."""
    distributed = getattr(loaded_torch(), "distributed", None)
    return distributed if distributed is not None and distributed.is_available() and distributed.is_initialized() else None


def find_world(
    rank: int | None, world_size: int | None, data_parallel: int | None, model: Any, options: dict[str, str]
) -> _flopmeter.World:
    """This process among its ranks: from the arguments, torch.distributed, or the launcher's environment."""
    world = _flopmeter.World()
    if (distributed := initialized_distributed()) is not None:
        if rank is None:
            rank, world_size = distributed.get_rank(), world_size or distributed.get_world_size()
        sizes = {split: int(options[f"{split}_parallel"]) for split in ("tensor", "pipeline", "context", "expert")}
        _learn_layout(world, distributed, as_module(model), {split: size for split, size in sizes.items() if size > 0})
    if rank is not None:
        world.rank = rank
    world.size = world_size or max(world.size, world.rank + 1)
    world.data_parallel = data_parallel or 0
    if not 0 <= world.rank < world.size:
        raise ValueError(f"rank is {world.rank} and world_size {world.size}: ranks are numbered from 0 to world_size - 1")
    return world


def make_exchange(options: dict[str, str]) -> int:
    """The address of the broadcast of rank 0's measurement, on a separate process group; 0 without one.

    All ranks must call this in the same order: making a group is a collective.
    """
    if options["broadcast"] != "true" or options["enabled"] != "true":
        return 0
    distributed = initialized_distributed()
    if distributed is None:
        log_once("broadcast: torch.distributed is not initialized, so each rank measures its own work; create the Monitor after init_process_group()")
        return 0
    group = distributed.new_group(backend="gloo")
    return torch_adapter().make_exchange(group.group_name)
