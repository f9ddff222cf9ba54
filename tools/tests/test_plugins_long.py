# SPDX-License-Identifier: Apache-2.0
"""One file per addition: a copy of the tree gets one plug-in of each kind, all with the same file name, and is built.

Each plug-in is a renamed copy of an existing one, so that the test follows changes of the interfaces.
"""
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NAME = "house"
# Kind to (folder, plug-in that is copied, replacements in its text).
KINDS = {
    "model": ("src/catalog/models", "aquila", {"Aquila": "House", "aquila": NAME}),
    "op": ("src/catalog/ops", "causal_conv1d", {"DaoAILab::": f"{NAME}::", '"causal_conv1d"': f'"{NAME}"'}),
    "convention": ("src/catalog/conventions", "kaplan_6n", {'"kaplan-6n"': f'"{NAME}"'}),
    "sink": ("src/sinks/formats", "jsonl", {'"jsonl"': f'"{NAME}"'}),
    "rule": ("src/analysis/rules", "padding", {'"padding"': f'"{NAME}"'}),
    "command": ("cli/commands", "rules", {'"rules"': f'"{NAME}"'}),
}
CONTRACTS = {"catalog": "*Contract*:*Families*:*RandomConfigs*:Devices*", "sinks": "*Contract*", "analysis": "*Rule*"}
TARGETS = ["flopmeter_cli", *(f"flopmeter_{module}_tests" for module in CONTRACTS)]

pytestmark = pytest.mark.long


def add_plugin(tree, kind):
    folder, model, replacements = KINDS[kind]
    text = (tree / folder / f"{model}.cpp").read_text()
    for old, new in {f"{kind}_{model}": f"{kind}_{NAME}", **replacements}.items():
        assert old in text, f"{folder}/{model}.cpp has no {old}"
        text = text.replace(old, new)
    (tree / folder / f"{NAME}.cpp").write_text(text)


def add_device(tree):
    table = tree / "src/catalog/devices.csv"
    rows = table.read_text().splitlines(keepends=True)
    row = next(row for row in rows if row.startswith("A100 PCIe 40GB"))
    fields = row.split(",")
    header = next(line for line in rows if line.startswith("name,")).split(",")
    fields[0], fields[header.index("aliases")] = "House 9000", ""
    table.write_text("".join(rows) + ",".join(fields))


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    copy = tmp_path_factory.mktemp("tree") / "flopmeter"
    files = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in files.split("\0"):
        if name and (ROOT / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, copy / name)
    for kind in KINDS:
        add_plugin(copy, kind)
    add_device(copy)
    build = copy / "build" / "plugins"
    options = ["-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_CXX_FLAGS_DEBUG=-O0", "-DFLOPMETER_WERROR=ON", "-DFLOPMETER_TESTS=ON",
               "-DFLOPMETER_PYTHON=OFF", "-DFLOPMETER_TORCH="]
    subprocess.run(["cmake", "-G", "Ninja", "-S", copy, "-B", build, *options], check=True, capture_output=True)
    jobs = str(len(os.sched_getaffinity(0)))
    done = subprocess.run(["cmake", "--build", build, "-j", jobs, "--target", *TARGETS], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-4000:]
    return build


def flopmeter(tree, *arguments):
    program = tree / "flopmeter"
    done = subprocess.run([program, *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("arguments, name", [
    (["models", NAME, "--families"], NAME),
    (["ops", f"{NAME}::_causal_conv1d_fwd_cpp"], f"{NAME}::_causal_conv1d_fwd_cpp"),
    (["conventions", NAME], NAME),
    (["rules", NAME], NAME),
    (["devices", "house 9000"], "House 9000"),
    ([NAME, NAME], NAME),
])
def test_a_plugin_is_listed(tree, arguments, name):
    (row,) = json.loads(flopmeter(tree, *arguments, "--json"))
    assert row["name"] == name


def test_a_family_a_convention_and_a_device_are_used_together(tree, tmp_path):
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"model_type": NAME, "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2,
                                  "intermediate_size": 16, "vocab_size": 32}))
    result = json.loads(flopmeter(tree, "estimate", str(config), "--convention", NAME, "--device", "house 9000",
                                  "--step-time", "1", "--json"))
    assert result["model"]["family"] == NAME and result["convention"] == NAME and result["rates"]["mfu"] > 0


@pytest.mark.parametrize("module", CONTRACTS)
def test_a_plugin_proves_itself_in_the_contract_tests(tree, module):
    program = next(tree.rglob(f"flopmeter_{module}_tests"))
    done = subprocess.run([program, f"--gtest_filter={CONTRACTS[module]}"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-4000:]
    ran = int(re.search(r"(\d+) tests? from", done.stdout).group(1))
    assert ran > 0


def test_the_sink_is_known_to_the_environment_check(tree):
    checks = json.loads(flopmeter(tree, "doctor", "--json"))["checks"]
    (outputs,) = [check["detail"] for check in checks if check["name"] == "outputs"]
    assert NAME in outputs.split(", ")
