# SPDX-License-Identifier: Apache-2.0
"""Launcher in the manner of FlagScale: a Hydra configuration becomes a script that starts the training program."""

from pathlib import Path

import hydra
from omegaconf import DictConfig, OmegaConf


def flags(block):
    """Keys of a block as Megatron's flags."""
    for key, value in block.items():
        name = key.replace("_", "-")
        if isinstance(value, bool):
            yield f"--{name}" if value else f"--no-{name}"
        else:
            yield f"--{name} {value}"


@hydra.main(version_base=None)
def main(config: DictConfig) -> None:
    if config.action != "run":
        raise SystemExit(f"action '{config.action}': expected run")
    train = OmegaConf.to_container(config.train, resolve=True)
    words = [word for block in ("system", "model", "data") for word in flags(train[block])]
    script = Path("outputs/logs/scripts/host_0_localhost_run.sh")
    script.parent.mkdir(parents=True, exist_ok=True)
    script.write_text("python flagscale/train/train_gpt.py " + " ".join(words) + "\n")


if __name__ == "__main__":
    main()
