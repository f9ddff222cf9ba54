# SPDX-License-Identifier: Apache-2.0
"""Console lines next to progress bars, on a pseudo-terminal as a person sees it (read with pyte)."""

import os
import pty
import re
import select
import subprocess
import sys
import termios
import time

import pytest

pyte = pytest.importorskip("pyte")

LOOP = """
import time, torch, flopmeter
model = torch.nn.Linear(64, 64)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
def step():
    model(torch.randn(8, 64)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    time.sleep(0.01)
"""

TQDM = LOOP + """
from tqdm import tqdm
monitor = flopmeter.Monitor("run", model=model, peak_tflops=1)
for _ in tqdm(range(60), desc="epoch"):
    with monitor.step():
        step()
    if _ == 50:
        monitor.finish()
"""

RICH = LOOP + """
from rich.console import Console
from rich.progress import Progress
monitor = flopmeter.Monitor("run", model=model, peak_tflops=1)
with Progress(console=Console(stderr=True)) as progress:
    task = progress.add_task("epoch", total=60)
    for _ in range(60):
        with monitor.step():
            step()
        progress.advance(task)
        if _ == 50:
            monitor.finish()
"""

TRANSFORMERS = LOOP + """
import transformers
from flopmeter.integrations import hf
config = transformers.LlamaConfig(hidden_size=32, intermediate_size=64, num_hidden_layers=1, num_attention_heads=2,
                                  num_key_value_heads=2, vocab_size=64, max_position_embeddings=32)
rows = [{"input_ids": torch.randint(0, 64, (16,)), "labels": torch.randint(0, 64, (16,))} for _ in range(40)]
arguments = transformers.TrainingArguments("out", max_steps=20, per_device_train_batch_size=2, logging_steps=10, report_to=[],
                                           save_strategy="no", use_cpu=True)
transformers.Trainer(transformers.LlamaForCausalLM(config), arguments, train_dataset=rows,
                     callbacks=[hf.Callback("run", peak_tflops=1, console=CONSOLE)]).train()
"""

LIGHTNING = LOOP + """
import lightning
from flopmeter.integrations.lightning import Callback
class Module(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(64, 1)
    def training_step(self, batch, index):
        return self.layer(batch).mean()
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)
loader = torch.utils.data.DataLoader(torch.randn(40, 64), batch_size=2)
lightning.Trainer(max_epochs=1, logger=False, enable_checkpointing=False, enable_model_summary=False, accelerator="cpu",
                  callbacks=[Callback("run", peak_tflops=1, console=CONSOLE)]).fit(Module(), loader)
"""


def screen_of(code, directory):
    """The lines of a terminal of 200 columns after the program has run in it."""
    screen = pyte.HistoryScreen(200, 60, history=2000)
    stream = pyte.ByteStream(screen)
    master, slave = pty.openpty()
    termios.tcsetwinsize(slave, (60, 200))
    env = {**os.environ, "TERM": "xterm", "COLUMNS": "200", "LINES": "60"}
    process = subprocess.Popen([sys.executable, "-c", code], stdin=slave, stdout=slave, stderr=slave, cwd=directory, env=env)
    os.close(slave)
    deadline = time.monotonic() + 240
    while time.monotonic() < deadline:
        if select.select([master], [], [], 0.2)[0]:
            try:
                stream.feed(os.read(master, 65536))
            except OSError:  # the program has ended
                break
    process.wait(10)
    os.close(master)
    above = ["".join(row[column].data for column in range(200)) for row in screen.history.top]
    lines = [line.rstrip() for line in [*above, *screen.display]]
    assert process.returncode == 0, "\n".join(lines)
    return [line for line in lines if line]


def check(lines, bar):
    text = "\n".join(lines)
    ours = [line for line in lines if "flopmeter  " in line]
    assert any("records in run" in line for line in ours), text
    assert any("MFU" in line for line in ours), text
    for line in ours:
        assert line.startswith("flopmeter  "), text
        assert not re.search(bar, line), text
    bars = [line for line in lines if re.search(bar, line)]
    assert len(bars) == 1, text


def test_a_tqdm_bar_stays_whole(tmp_path):
    check(screen_of(TQDM, tmp_path), r"epoch.*it/s")


def test_a_rich_bar_stays_whole(tmp_path):
    pytest.importorskip("rich")
    check(screen_of(RICH, tmp_path), r"epoch .*100%")


@pytest.mark.long
def test_the_bar_of_transformers_stays_whole(tmp_path):
    check(screen_of(f"CONSOLE = True\n{TRANSFORMERS}", tmp_path), r"20/20")


@pytest.mark.long
def test_the_bar_of_lightning_stays_whole(tmp_path):
    check(screen_of(f"CONSOLE = True\n{LIGHTNING}", tmp_path), r"Epoch 0.*20/20")


@pytest.mark.parametrize("program", [TRANSFORMERS, LIGHTNING], ids=["transformers", "lightning"])
def test_a_callback_prints_nothing_by_default(program, tmp_path):
    lines = screen_of(program.replace(", console=CONSOLE", ""), tmp_path)
    assert not [line for line in lines if "flopmeter" in line], "\n".join(lines)
