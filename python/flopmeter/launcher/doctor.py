# SPDX-License-Identifier: Apache-2.0
"""Checks of a Python interpreter as a JSON list; ``flopmeter doctor`` runs it with that interpreter."""

import importlib
import json
import os
import sys

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# Optional packages.
OTHERS = (
    ("transformers", "Hugging Face Trainer"),
    ("lightning", "Lightning"),
    ("accelerate", "accelerate"),
    ("deepspeed", "DeepSpeed"),
    ("tensorboard", "TensorBoard reader"),
    ("wandb", "W&B writer"),
    ("mlflow", "MLflow writer"),
)


def check(name, ok, detail, recommendation=""):
    return {"name": name, "ok": bool(ok), "detail": str(detail), "recommendation": "" if ok else recommendation}


def reason(error):
    return str(error).split("\n")[0].replace("flopmeter: ", "")


def package():
    try:
        module = importlib.import_module("flopmeter")
        module.options()
    except Exception as error:
        return check("Python package", False, reason(error), "run pip install . with this Python, or build with it")
    return check("Python package", True, "{} in {}".format(module.__version__, os.path.dirname(module.__file__)))


def torch_checks():
    try:
        torch = importlib.import_module("torch")
    except Exception as error:
        return [check("torch", False, reason(error), "run pip install torch, or select another Python with --python")]
    rows = [check("torch", True, torch.__version__)]
    try:
        adapter = importlib.import_module("flopmeter.torch.adapter").torch_adapter()
        adapter.FlopCounter()
        detail = "{} operators are counted".format(len(adapter.intercepted_ops()))
        compiled = not adapter.counts_in_python()
        rows.append(check("torch adapter", compiled, detail if compiled else "FLOPs are counted in Python", "install g++ or set CXX"))
    except Exception as error:
        rows.append(check("torch adapter", False, reason(error), "build with this torch"))
    devices = torch.cuda.device_count() if torch.cuda.is_available() else 0
    names = ", ".join(sorted({torch.cuda.get_device_name(i) for i in range(devices)}))
    rows.append(check("GPUs in torch", devices, "{} x {}".format(devices, names) if devices else "none", "the CPU is measured"))
    distributed = importlib.import_module("torch.distributed")
    backends = []
    if distributed.is_available():
        backends = [name for name in ("gloo", "nccl", "mpi") if getattr(distributed, "is_{}_available".format(name))()]
    rows.append(check("ranks in torch", backends, ", ".join(backends) or "torch.distributed is not built", "use another torch"))
    return rows


def others():
    from importlib import metadata

    for name, what in OTHERS:
        for distribution in (name, name + "-skinny"):
            try:
                yield check(what, True, "{} {}".format(distribution, metadata.version(distribution)))
                break
            except metadata.PackageNotFoundError:
                pass
        else:
            yield check(what, False, name + " is not installed", "optional; pip install " + name)


if __name__ == "__main__":
    sys.path.pop(0)  # remove this folder: its sitecustomize is not for this process
    sys.path.append(os.path.dirname(PACKAGE))
    version = "{} at {}".format(sys.version.split()[0], sys.executable)
    rows = [check("Python", True, version), package(), *torch_checks(), *others()]
    print(json.dumps(rows))
