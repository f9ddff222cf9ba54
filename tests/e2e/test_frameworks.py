# SPDX-License-Identifier: Apache-2.0
"""Each row of the launcher's table: what is patched after the import of Megatron, FlagScale, and Megatron-Bridge.

The loops are fixtures of the shape of these programs: the names and signatures that flopmeter relies on, for four core releases.
"""

import importlib.util
import sys

import flopmeter
import pytest
from conftest import SCRIPTS
from flopmeter import log
from flopmeter.integrations import flagscale, megatron_bridge, megatron_training

FRAMEWORKS = SCRIPTS / "frameworks"
CORES = ("0.12", "0.16", "0.18", "main")
SAMPLES = [3, 3, 6, 6, 6, 6]  # the micro-batch calculator doubles the batch

pytestmark = pytest.mark.torch2("hooks for optimizers")


def run(folder, script="pretrain.py", *arguments, run_options=(), **env):
    """Run a loop under ``flopmeter run``, or without it if ``run_options`` is None."""
    output, errors, code = folder.run(
        sys.executable, FRAMEWORKS / script, *arguments, run_options=run_options, PYTHONPATH=str(FRAMEWORKS), **env
    )
    assert code == 0, errors
    return output, errors


@pytest.fixture
def here(folder, monkeypatch, capfd):
    """Runs the loop of Megatron's fixture in this process, patched as the table has it; returns stdout and stderr."""
    log._logged.clear()
    monkeypatch.setattr(sys, "path", [str(FRAMEWORKS), *sys.path])

    def load(name, **env):
        for key, value in env.items():
            monkeypatch.setenv(key, value)
        spec = importlib.util.spec_from_file_location(name, FRAMEWORKS / (name.replace(".", "/") + ".py"))
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, name, module)
        spec.loader.exec_module(module)
        return module

    def run_here(**env):
        monkeypatch.setenv("FLOPMETER_DIRECTORY", str(folder.logs))
        monkeypatch.setenv("FLOPMETER_OVERHEAD_BUDGET", "1")
        if "FLAGSCALE" in env:
            flagscale.install(load("flagscale.train.perf_monitor.hooks", **env))
        module = load("megatron.training.training", **env)
        if "GONE" not in env:
            megatron_training.install(module)
        module.pretrain()
        return capfd.readouterr()

    run_here.load = load
    yield run_here
    for name in ("megatron", "megatron.core", "megatron.core.num_microbatches_calculator", "flagscale", "flagscale.train"):
        sys.modules.pop(name, None)


def model_flops(samples, convention="model-v1"):
    from tiny_gpt import CONFIG, LENGTH

    return flopmeter.estimate(CONFIG, seq_len=LENGTH, batch=samples, convention=convention)["flops"]["model"]


def printed(output, column):
    rows = [line.split() for line in output.splitlines() if line[0].isdigit()]
    return [float.fromhex(row[column]) for row in rows]


def check_records(folder, output):
    rows = folder.records()
    assert [row["step"] for row in rows] == [1, 2, 3, 4, 5, 6]
    assert [row["samples"] for row in rows] == SAMPLES
    assert [row["micro_batches"] for row in rows] == [1, 1, 2, 2, 2, 2]
    assert [row["model_flops"] for row in rows] == [model_flops(samples) for samples in SAMPLES]
    assert {(row["flops_source"], row["convention"], row["learning_rate"]) for row in rows} == {("estimate", "model-v1", 1e-3)}
    assert [row["loss"] for row in rows] == pytest.approx(printed(output, 1))
    assert [row["grad_norm"] for row in rows] == pytest.approx(printed(output, 2))
    assert all(row["hardware_flops"] > 0.9 * row["model_flops"] for row in rows)
    assert all(row["phases"][name] > 0 for row in rows for name in ("forward", "backward", "optimizer"))
    assert [row["tag"] for row in folder.records(tag=None) if row["tag"] in ("evaluation", "checkpoint")] == ["evaluation", "checkpoint"]


def test_megatrons_loop_is_recorded_without_an_edit(folder):
    alone, _ = run(folder, run_options=None)
    output, errors = run(folder, run_options=["--no-console"])
    assert (output, errors) == (alone, "")
    check_records(folder, output)


@pytest.mark.parametrize("core", CORES)
def test_the_signatures_of_every_core_are_bound_by_name(folder, here, core):
    check_records(folder, here(CORE=core).out)


@pytest.mark.parametrize("core", ("0.12", "main"))
def test_a_resumed_loop_continues_megatrons_numbers(folder, here, core):
    here(CORE=core, ITERATION="4")
    assert [row["step"] for row in folder.records()] == [5, 6]


@pytest.mark.parametrize("core", ("0.12", "main"))
def test_skipped_iterations_keep_their_numbers(folder, here, core):
    here(CORE=core, SKIPPED="2")
    assert [row["step"] for row in folder.records()] == [1, 3, 4, 5, 6]


def test_the_convention_is_the_one_of_the_figure(folder, here):
    here(FLOPMETER_CONVENTION="megatron")
    rows = folder.records()
    assert [row["model_flops"] for row in rows] == [model_flops(samples, "megatron") for samples in SAMPLES]
    assert {(row["flops_source"], row["convention"]) for row in rows} == {("estimate", "megatron")}


@pytest.mark.parametrize("convention", ["megatron", "model-v1"])
def test_convention_megatron_is_the_figure_of_the_release(folder, here, convention):
    errors = here(OTHER_FORMULA="1", FLOPMETER_CONVENTION=convention).err
    own = convention == "megatron"
    assert ("model FLOPs are those of Megatron's num_floating_point_operations()" in errors) == own
    rows = folder.records()
    assert [row["model_flops"] for row in rows] == [1000 * n if own else model_flops(n) for n in SAMPLES]
    assert {(row["flops_source"], row["convention"]) for row in rows} == {("framework" if own else "estimate", convention)}


def test_a_model_without_a_family_has_megatrons_own_figure(folder, here):
    errors = here(NO_FAMILY="1").err
    assert "retro_add_retriever; model FLOPs are those of Megatron's num_floating_point_operations()" in errors
    rows = folder.records()
    assert [row["model_flops"] for row in rows] == [1000 * samples for samples in SAMPLES]
    assert {(row["flops_source"], row["convention"]) for row in rows} == {("framework", "megatron")}
    assert all(row["hardware_flops"] > row["model_flops"] for row in rows)


def test_the_work_of_a_model_with_a_vision_tower_is_counted(folder, here):
    here(VISION="1")
    rows = folder.records()
    executed = [model_flops(samples, "executed") for samples in SAMPLES]
    assert [row["hardware_flops"] for row in rows] == executed
    assert all(1000 * samples < row["model_flops"] <= row["hardware_flops"] for samples, row in zip(SAMPLES, rows))
    assert {(row["flops_source"], row["convention"]) for row in rows} == {("counted", "model-v1")}


@pytest.mark.parametrize("own", [{}, {"NO_FAMILY": "1"}])
def test_packed_documents_count_by_their_lengths(folder, here, own):
    here(PACKED="1", **own)
    lengths = [7, 4] * 3  # of each micro-batch
    from tiny_gpt import CONFIG

    figure = flopmeter.estimate(CONFIG, seq_lens=lengths)["flops"]["model"] if not own else 1000 * 3 + sum(lengths) + sum(n * n for n in lengths)
    (row, *_) = folder.records()
    assert (row["samples"], row["tokens"], row["model_flops"]) == (3, sum(lengths), figure)
    assert row["hardware_flops"] > 0


def test_a_missing_function_leaves_the_generic_tracker_and_one_line(folder):
    _, errors = run(folder, run_options=["--no-console"], GONE="training_log")
    lines = [line for line in errors.splitlines() if "megatron" in line]
    assert lines == ["flopmeter: megatron.training.training is monitored by the hooks of torch alone: it has no function training_log"]
    rows = folder.records()
    assert len(rows) == 6 and {row["flops_source"] for row in rows} == {"counted"}


def test_other_ranks_log_nothing_about_a_missing_function(folder):
    _, errors = run(folder, run_options=["--no-console"], GONE="training_log", RANK="1", WORLD_SIZE="2")
    assert "megatron" not in errors


def test_a_hook_that_raises_leaves_the_loop_and_the_generic_tracker(folder):
    output, errors = run(folder, run_options=["--no-console"], BROKEN="1")
    assert len(printed(output, 1)) == 6
    assert "the run continues without the monitor, which failed: RuntimeError: injected" in errors
    assert len(folder.records()) == 6


def test_flagscales_key_starts_flopmeter_in_flagscales_folder(folder):
    theirs = folder.path / "flagscale"
    output, _ = run(folder, FLAGSCALE=str(theirs))
    assert "FlagScale's own monitor" not in output
    assert not folder.logs.exists()
    folder.logs = theirs
    check_records(folder, output)


def test_flagscales_hooks_work_if_megatrons_functions_are_missing(folder, here):
    theirs = folder.path / "flagscale"
    here(FLAGSCALE=str(theirs), GONE="training_log")
    folder.logs = theirs
    rows = folder.records()
    assert [(row["step"], row["model_flops"]) for row in rows] == [(i + 1, model_flops(n)) for i, n in enumerate(SAMPLES)]


def test_hooks_of_flagscale_that_lack_a_function_stay_as_they_are(here):
    module = here.load("flagscale.train.perf_monitor.hooks", GONE_HOOK="get_perf_monitor")
    with pytest.raises(AttributeError, match="it has no function get_perf_monitor"):
        flagscale.install(module)
    assert module.initialize_perf_monitor.__module__ == "flagscale.train.perf_monitor.hooks"


@pytest.mark.parametrize("callbacks", ["none", "manager"])
def test_bridges_callbacks_are_followed_by_ours(folder, callbacks):
    output, _ = run(folder, "bridge.py", callbacks, run_options=["--no-console"])
    assert output.count("user") == (0 if callbacks == "none" else 4)
    rows = folder.records()
    assert [(row["step"], row["samples"], row["model_flops"]) for row in rows] == [(i, 3, model_flops(3)) for i in (1, 2, 3, 4)]
    assert [row["loss"] for row in rows] == pytest.approx(printed(output, 1))
    assert {(row["grad_norm"], row["learning_rate"]) for row in rows} == {(1.5, 1e-3)}
    tags = [row["tag"] for row in folder.records(tag=None)]
    assert (tags.count("evaluation"), tags.count("checkpoint")) == (1, 1)  # a checkpoint has several files


def test_a_bridge_callback_that_raises_leaves_the_loop(folder):
    output, errors = run(folder, "bridge.py", "raises", run_options=["--no-console"])
    assert len(printed(output, 1)) == 4
    assert "the run continues without the monitor, which failed: RuntimeError: injected" in errors


@pytest.mark.parametrize("name", ["normalize_callbacks", "CallbackManager"])
def test_a_bridge_without_what_is_wrapped_is_left_alone(here, name):
    module = here.load("megatron.bridge.training.callbacks", GONE=name)
    with pytest.raises(AttributeError, match=f"it has no {name}"):
        megatron_bridge.install(module)
