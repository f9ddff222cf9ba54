# SPDX-License-Identifier: Apache-2.0
"""The Python files of libraries, with stubs for their kernels.

The files are not part of the project.  They are taken from the folders in FLOPMETER_TEST_LIBRARIES (flash_attn-2.8.3, …), or from
the package index.
"""

import json
import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

pytestmark = [pytest.mark.long, pytest.mark.torch2("torch.library.custom_op")]
PROGRAM = Path(__file__).parent / "real_callers.py"
FORWARD, BACKWARD = 2 * 4 * 2 * 8, 2 * 4 * 5 * 8  # of a pair: four heads, keys and values of size 8


def unpack(wheel, folder):
    """Extracts all files with their modes: Triton runs programs that it contains."""
    with zipfile.ZipFile(wheel) as archive:
        for each in (info for info in archive.infolist() if not info.is_dir()):
            Path(archive.extract(each, folder)).chmod(each.external_attr >> 16 | 0o600)


@pytest.fixture(scope="session")
def library(tmp_path_factory):
    """Finds or downloads releases into one folder."""

    def find(*releases):
        folder = tmp_path_factory.mktemp("libraries")
        for release in releases:
            name, version = release.rsplit("-", 1)
            found = Path(os.environ.get("FLOPMETER_TEST_LIBRARIES", "/nonexistent"), release)
            if found.is_dir():
                for each in found.iterdir():
                    (folder / each.name).symlink_to(each)
                continue
            source = ["--no-binary", ":all:", "--no-build-isolation"] if name == "flash_attn" else []
            done = subprocess.run(
                [sys.executable, "-m", "pip", "download", "-q", "--no-deps", *source, "-d", str(folder), f"{name}=={version}"],
                capture_output=True,
                text=True,
                timeout=300,
                env={**os.environ, "FLASH_ATTENTION_SKIP_CUDA_BUILD": "TRUE"},
            )
            if done.returncode != 0:
                pytest.skip(f"{release} is neither in FLOPMETER_TEST_LIBRARIES nor on the package index")
            file = next(folder.glob(f"{name}-*"))
            if file.suffix == ".whl":
                unpack(file, folder)
            else:
                with tarfile.open(file) as archive:
                    archive.extractall(folder, filter="data")
                (folder / name).symlink_to(folder / release / name)
            file.unlink()
        return folder

    return find


def run(name, folder, interpret=True):
    done = subprocess.run(
        [sys.executable, str(PROGRAM), name, str(folder)],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "TRITON_INTERPRET": str(int(interpret)), "TRITON_CACHE_DIR": str(folder / "cache")},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def run_supported(name, folder):
    result = run(name, folder)
    assert all(each["unsupported"] == [] for each in result.values())
    return result


@pytest.mark.parametrize(("version", "operator"), [("2.6.3", "flash_attn_2_cuda::"), ("2.8.3", "flash_attn::_flash_attn_")])
def test_flash_attention(library, version, operator):
    result = run_supported("flash_attn", library(f"flash_attn-{version}"))
    for case, pairs in (("causal", 2 * (3 + 4 + 5)), ("window", 2 * 6), ("packed", 15 + 3)):
        assert (result[case]["forward"], result[case]["backward"]) == (pairs * FORWARD, pairs * BACKWARD)
        assert all(each.startswith(operator) for each in result[case]["ops"])
        assert result[case]["bounded"] == 0


def test_megatron_counts_three_of_three_matmuls(library):
    result = run_supported("megatron", library("megatron_core-0.16.1", "triton-3.9.0"))["linear"]
    forward = 2 * 16 * (32 * 64 + 64 * 48)
    assert (result["forward"], result["backward"]) == (forward, 2 * forward)
    assert result["ops"] == {"aten::mm": 2 * forward, "fused_weight_gradient_mlp_cuda::wgrad_gemm_accum_fp32": forward}


def test_liger_computes_gradients_in_the_forward_pass(library):
    result = run_supported("liger", library("liger_kernel-0.8.5", "triton-3.9.0"))["loss"]
    assert (result["forward"], result["backward"]) == (3 * 2 * 16 * 32 * 64, 0)


@pytest.mark.parametrize("version", ["2.2.0", "2.9.0", "2.13.0", "2.20.2"])
def test_transformer_engine_attention_at_the_positions_of_its_calls(library, version):
    result = run_supported("transformer_engine", library(f"transformer_engine-{version}"))
    pairs = 2 * (3 + 4 + 5)
    assert result["fused_attn_fwd"]["forward"] == pairs * 2 * 4 * (8 + 6)
    assert result["fused_attn_bwd"]["forward"] == pairs * 2 * 4 * (3 * 8 + 2 * 6)  # outside of a backward pass


def test_layers_of_transformer_engine(library):
    result = run_supported("transformer_engine_layers", library("transformer_engine-2.20.2", "triton-3.9.0"))
    for layer, op, matmuls in (("Linear", "generic_gemm", 1), ("LayerNormMLP", "generic_gemm", 2), ("GroupedLinear", "te_general_grouped_gemm", 1)):
        forward = matmuls * 2 * 16 * 32 * 64
        assert (result[layer]["forward"], result[layer]["backward"]) == (forward, 2 * forward)
        assert list(result[layer]["ops"]) == [f"transformer_engine_torch::{op}"]


@pytest.mark.parametrize("interpret", [True, False])
def test_a_triton_kernel_that_multiplies_is_named(library, interpret):
    result = run("triton_kernel", library("triton-3.9.0"), interpret)
    assert result["names"] == [["user_kernels::multiply", 1 if interpret else 2]]
