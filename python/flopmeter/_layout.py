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


def learn_layout(world: _flopmeter.World, distributed: Any, module: Any) -> None:
    """Fill in how the work is split; a split that nobody describes stays 1."""
    for split, group in [*_described(distributed), *(_of_meshes(module) if module is not None else ())]:
        ranks = distributed.get_process_group_ranks(group)
        setattr(world, f"{split}_parallel", len(ranks))
        if split == "tensor":
            world.tensor_rank = ranks.index(distributed.get_rank())
        if split == "pipeline" and len(ranks) > 1:
            world.pipeline_stride = ranks[1] - ranks[0]
