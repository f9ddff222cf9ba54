# SPDX-License-Identifier: Apache-2.0
"""How a run splits its work over ranks, as its process groups and device meshes say."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from flopmeter import _flopmeter

# What people call the dimensions of a device mesh, and what Megatron calls its groups.
_DIMENSIONS = {"tp": "tensor", "pp": "pipeline", "cp": "context", "sp": "context", "ep": "expert"}
_GROUPS = {
    **{f"mesh_{name}": split for name, split in _DIMENSIONS.items()},
    "TENSOR_MODEL_PARALLEL_GROUP": "tensor",
    "PIPELINE_MODEL_PARALLEL_GROUP": "pipeline",
    "CONTEXT_PARALLEL_GROUP": "context",
    "EXPERT_MODEL_PARALLEL_GROUP": "expert",
}


def _described(distributed: Any) -> Iterator[tuple[str, Any]]:
    """The groups of this rank that say what they are for; torch below 2.3 does not describe its groups."""
    state = getattr(distributed.distributed_c10d, "_world", None)
    for group in list(getattr(state, "pg_map", ())):
        if split := _GROUPS.get(getattr(group, "group_desc", "")):
            yield split, group


def _of_meshes(module: Any) -> Iterator[tuple[str, Any]]:
    """Those of the meshes that parameters lie on: a mesh over the whole world has no group of its own."""
    meshes = {id(mesh): mesh for p in module.parameters() if (mesh := getattr(p, "device_mesh", None)) is not None}
    for mesh in meshes.values():
        for name in mesh.mesh_dim_names or ():
            if split := _DIMENSIONS.get(name):
                yield split, mesh.get_group(name)


def _ranks_by_split(distributed: Any, found: Iterator[tuple[str, Any]]) -> dict[str, list[int]]:
    """The ranks that share each split; one that several groups describe differently is nobody's to tell."""
    known: dict[str, list[int]] = {}
    unclear = set()
    for split, group in found:
        ranks = distributed.get_process_group_ranks(group)
        if known.setdefault(split, ranks) != ranks:
            unclear.add(split)
    return {split: ranks for split, ranks in known.items() if split not in unclear}


def learn_layout(world: _flopmeter.World, distributed: Any, module: Any, said: dict[str, int]) -> None:
    """Fill in how the work is split; a split that nobody describes stays 1.

    ``said``: sizes that the options give.  Where they give any, other splits are not looked for: a process may hold
    groups that this model does not use.
    """
    described = _ranks_by_split(distributed, _described(distributed))
    if module is not None:
        described |= _ranks_by_split(distributed, _of_meshes(module))
    for split, ranks in described.items():
        if said and said.get(split) != len(ranks):
            continue
        setattr(world, f"{split}_parallel", len(ranks))
        if split == "tensor":
            world.tensor_rank = ranks.index(distributed.get_rank())
        if split == "pipeline" and len(ranks) > 1:
            world.pipeline_stride = ranks[1] - ranks[0]
