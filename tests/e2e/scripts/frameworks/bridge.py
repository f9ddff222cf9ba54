# SPDX-License-Identifier: Apache-2.0
"""A loop of the shape of Megatron-Bridge's.

bridge.py [none|manager|raises]: the callbacks of the user; with ``raises``, reading the configuration raises.
"""

import sys
from pathlib import Path
from types import SimpleNamespace

import torch

sys.path.append(str(Path(__file__).parents[1]))

from megatron.bridge.training import callbacks as own  # noqa: E402
from megatron.bridge.training import train as loop  # noqa: E402
from tiny_gpt import HEADS, LAYERS, LENGTH, VOCABULARY, WIDTH, Gpt  # noqa: E402

KIND = sys.argv[1] if len(sys.argv) > 1 else "none"


class Printer:
    def on_train_step_end(self, context):
        print("user", context.state.train_state.step)


class Broken:
    @property
    def model(self):
        raise RuntimeError("injected")


def given():
    if KIND == "manager":
        manager = own.CallbackManager()
        manager.register("on_train_step_end", Printer().on_train_step_end)
        own.normalize_callbacks(manager)  # a second pass must not add callbacks again
        return manager
    return None


def configuration():
    if KIND == "raises":
        return Broken()
    model = SimpleNamespace(
        num_layers=LAYERS,
        hidden_size=WIDTH,
        num_attention_heads=HEADS,
        num_query_groups=HEADS,
        kv_channels=WIDTH // HEADS,
        ffn_hidden_size=4 * WIDTH,
        seq_length=LENGTH,
        vocab_size=VOCABULARY,
        make_vocab_size_divisible_by=1,
        gated_linear_unit=False,
        num_moe_experts=None,
        share_embeddings_and_output_weights=True,
    )
    return SimpleNamespace(model=model, train=SimpleNamespace(micro_batch_size=3, global_batch_size=3))


def train(manager):
    torch.manual_seed(1)
    model = [Gpt()]
    optimizer = torch.optim.AdamW(model[0].parameters(), lr=1e-3)
    state = SimpleNamespace(cfg=configuration(), train_state=SimpleNamespace(step=0))

    def fire(event, loss_dict=None, grad_norm=None):
        if manager is not None:
            manager.fire(event, SimpleNamespace(state=state, model=model, optimizer=optimizer, loss_dict=loss_dict, grad_norm=grad_norm))

    fire("on_train_start")
    while state.train_state.step < 4:
        fire("on_train_step_start")
        tokens = torch.randint(VOCABULARY, (3, LENGTH + 1))
        _, loss = model[0](tokens[:, :-1], tokens[:, 1:])
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        print(state.train_state.step, loss.item().hex())
        fire("on_train_step_end", {"lm loss": loss.detach()}, 1.5)
        state.train_state.step += 1
        if state.train_state.step == 2:
            fire("on_eval_start")
            fire("on_eval_end")
            loop.save_checkpoint_and_time(state, model)
    fire("on_train_end")


train(getattr(own, "normalize_callbacks", lambda callbacks: callbacks)(given()))
