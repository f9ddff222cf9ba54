# SPDX-License-Identifier: Apache-2.0
"""Checkpoints, generation, garbage collection, and waits for the interpreter lock are found without a report of the loop."""

import gc
import json
import os
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import torch

import flopmeter
from run_records import records

PROGRAM = Path(__file__).resolve().parents[2] / "build" / "flopmeter"


def loop(directory, steps, between=lambda step: None, **options):
    torch.manual_seed(0)
    model = torch.nn.Linear(64, 64)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    monitor = flopmeter.Monitor(directory, model=model, peak_tflops=1, console=False, **options)
    for step, batch in enumerate(monitor.wrap(torch.randn(8, 64) for _ in range(steps))):
        model(batch).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        between(step)
    monitor.finish()
    return records(directory)


def test_torch_save_between_steps_is_a_checkpoint(tmp_path):
    state = torch.nn.Linear(64, 64).state_dict()
    rows = loop(tmp_path, 20, lambda step: torch.save(state, tmp_path / "model.pt") if step % 5 == 4 else None)
    saved = [row for row in rows if row["tag"] == "checkpoint"]
    assert len(saved) == 4
    assert len([row for row in rows if row["tag"] in ("train", "profile")]) == 20
    assert all(row["phases"]["checkpoint"] > 0 for row in saved)


def test_the_original_functions_are_back_after_the_run(tmp_path):
    before = torch.save, list(gc.callbacks)
    loop(tmp_path, 3)
    assert (torch.save, list(gc.callbacks)) == before


def test_generation_is_counted_as_its_closed_form(tmp_path):
    transformers = pytest.importorskip("transformers")
    hidden, ffn, layers, vocab, prompt, new, batch = 32, 48, 2, 64, 7, 5, 3
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(
        hidden_size=hidden, intermediate_size=ffn, num_hidden_layers=layers, vocab_size=vocab, num_attention_heads=4,
        num_key_value_heads=4, max_position_embeddings=64))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    monitor = flopmeter.Monitor(tmp_path, model=model, peak_tflops=1, console=False)
    tokens = torch.randint(2, vocab, (batch, prompt))
    for _ in monitor.wrap(range(3)):
        model.eval()
        model.generate(tokens, max_new_tokens=new, min_new_tokens=new, do_sample=False, pad_token_id=0)
        model.train()
        model(input_ids=tokens, labels=tokens).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    monitor.finish()
    rows = [row for row in records(tmp_path) if row["tag"] == "generation"]
    assert len(rows) == 3
    # Prefill of the prompt, then one pass per further token over the cached keys; the head sees the last token only.
    block = layers * (4 * hidden * hidden + 3 * hidden * ffn)
    matmuls = 2 * batch * (block * (prompt + new - 1) + hidden * vocab * new)
    pairs = prompt * (prompt + 1) // 2 + sum(prompt + 1 + i for i in range(new - 1))
    attention = 2 * 2 * batch * layers * hidden * pairs
    assert [row["model_flops"] for row in rows] == [matmuls + attention] * 3
    assert [(row["samples"], row["tokens"]) for row in rows] == [(batch, batch * new)] * 3


def test_work_between_generation_and_the_forward_pass_is_counted(tmp_path):
    policy, reference = torch.nn.Linear(16, 8), torch.nn.Linear(16, 4)
    optimizer = torch.optim.SGD(policy.parameters(), lr=0.1)
    monitor = flopmeter.Monitor(tmp_path, model=policy, peak_tflops=1, console=False)
    for prompts in monitor.wrap([torch.ones(2, 16)] * 3):
        x = torch.ones(3, prompts.shape[1])
        with monitor.phase("generation"), torch.no_grad():
            policy(x)
        with torch.no_grad():
            wanted = reference(x).sum()
        (policy(x).sum() - wanted).backward()
        optimizer.step()
    monitor.finish()
    forward, backward, referenced = 2 * 3 * 16 * 8, 2 * 3 * 16 * 8, 2 * 3 * 16 * 4  # x takes no gradient
    rows = records(tmp_path)
    assert [row["hardware_flops"] for row in rows if row["tag"] == "train"] == [forward + backward + referenced] * 3
    assert [row["hardware_flops"] for row in rows if row["tag"] == "generation"] == [forward] * 3
    assert [row["samples"] for row in rows if row["tag"] == "train"] == [3] * 3


def diagnosis_of(directory):
    done = subprocess.run([str(PROGRAM), "diagnose", str(directory), "--json"], capture_output=True, text=True, env=os.environ)
    diagnosis = json.loads(done.stdout)
    shares = {line["cause"]: line["share"] for line in diagnosis["budget"]}
    shares.pop("busy_machine", None)  # of the machine that runs the tests
    return shares, [finding["rule"] for finding in diagnosis["findings"] if finding["rule"] != "busy_machine"]


def test_garbage_collection_is_named(tmp_path):
    garbage = [[index] for index in range(400_000)]
    loop(tmp_path, 40, lambda step: gc.collect())
    del garbage
    shares, rules = diagnosis_of(tmp_path)
    assert max(shares, key=shares.get) == "garbage_collection", shares
    assert "garbage_collection" in rules and "loop" not in rules


def with_thread(work):
    """Runs ``work`` again and again in a second Python thread until the result is called."""
    done = threading.Event()

    def run():
        while not done.is_set():
            work()

    thread = threading.Thread(target=run)
    thread.start()

    def stop():
        done.set()
        thread.join()

    return stop


def disturbed(directory, work):
    """A run whose steps wait for a second thread several times.  On a busy machine that thread may get no processor."""
    for attempt in range(20):
        run = directory / str(attempt)
        stop = with_thread(work)
        try:
            rows = loop(run, 60)
        finally:
            stop()
        if statistics.mean(row["step_seconds"] for row in rows) > 4 * sys.getswitchinterval():
            return run
    pytest.skip("other programs take the processors: the second thread did not slow down the loop")


def test_a_python_thread_that_holds_the_interpreter_lock_is_named(tmp_path):
    shares, rules = diagnosis_of(disturbed(tmp_path, lambda: None))
    assert max(shares, key=shares.get) == "interpreter_lock", shares
    assert shares["interpreter_lock"] > 0.2  # about 0.7; samples are missed where other programs take the processors
    assert rules[0] == "interpreter_lock"


def test_threads_that_do_not_hold_the_lock_are_not_blamed(tmp_path):
    # Sleeps; computes without the lock on torch's own threads; and takes records from the monitor, as a sink does.
    factor = torch.randn(768, 768)
    flopmeter.register_sink("idle", lambda record: None)
    stops = [with_thread(lambda: time.sleep(0.01)), with_thread(lambda: factor @ factor @ factor)]
    try:
        rows = loop(tmp_path, 200, lambda step: time.sleep(0.005), sinks="idle")
    finally:
        for stop in stops:
            stop()
    waited = sum(row["interpreter_lock_seconds"] or 0 for row in rows)
    assert waited < 0.1 * sum(row["step_seconds"] for row in rows)
    assert "interpreter_lock" not in diagnosis_of(tmp_path)[1]
