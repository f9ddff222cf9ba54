# SPDX-License-Identifier: Apache-2.0
"""A training loop of the shape of Megatron's: the functions that flopmeter wraps, with the signatures of four core releases.

CORE: the release; GONE=training_log: this function is missing; BROKEN: get_args() raises for others than the loop; PACKED: each
micro-batch holds three sequences with documents of 7 and 4 tokens; NO_FAMILY: a model that the catalog does not have; OTHER_FORMULA:
the release has another figure than the catalog; SKIPPED: the iteration that the loop skips; FLAGSCALE: the loop calls the hooks of
FlagScale, whose folder this is.
"""

import argparse
import os
import sys

import torch
from megatron.core.num_microbatches_calculator import get_num_microbatches, update_num_microbatches
from tiny_gpt import HEADS, LAYERS, LENGTH, VOCABULARY, WIDTH, Gpt

if os.environ.get("FLAGSCALE"):
    from flagscale.train.perf_monitor.hooks import (
        initialize_perf_monitor,
        perf_monitor_end_iteration,
        perf_monitor_end_training,
        perf_monitor_start_iteration,
    )
else:

    def initialize_perf_monitor(args):
        return None

    def perf_monitor_end_training(writer=None, wandb_writer=None):
        return None


CORE = os.environ.get("CORE", "main")
MICRO_BATCH = 3
_args = argparse.Namespace(
    num_layers=LAYERS,
    hidden_size=WIDTH,
    num_attention_heads=HEADS,
    ffn_hidden_size=4 * WIDTH,
    seq_length=LENGTH,
    padded_vocab_size=VOCABULARY,
    micro_batch_size=MICRO_BATCH,
    global_batch_size=2 * MICRO_BATCH,
    data_parallel_size=1,
    world_size=1,
    rank=0,
    iteration=int(os.environ.get("ITERATION", "0")),
    train_iters=6,
    enable_perf_monitor=bool(os.environ.get("FLAGSCALE")),
    perf_log_dir=os.environ.get("FLAGSCALE") or None,
    perf_log_interval=2,
    retro_add_retriever=bool(os.environ.get("NO_FAMILY")),
    vision_pretraining=bool(os.environ.get("VISION")),
)


def get_args():
    if os.environ.get("BROKEN") and sys._getframe(1).f_globals["__name__"] != __name__:
        raise RuntimeError("injected")
    return _args


def num_floating_point_operations(args, batch_size, seqlen_squared_sum_in_batch=None, total_real_tokens_in_batch=None):
    args.num_query_groups = args.num_attention_heads  # Megatron's own function changes its arguments
    if os.environ.get("NO_FAMILY") or os.environ.get("OTHER_FORMULA"):
        return 1000.0 * batch_size + (seqlen_squared_sum_in_batch or 0) + (total_real_tokens_in_batch or 0)
    tokens, width = batch_size * args.seq_length, args.hidden_size
    return 6.0 * tokens * (args.num_layers * width * (12 * width + args.seq_length) + width * args.padded_vocab_size)


def _step(model, optimizer):
    losses = []
    for _ in range(get_num_microbatches()):
        tokens = torch.randint(VOCABULARY, (MICRO_BATCH, LENGTH + 1))
        _, loss = model[0](tokens[:, :-1], tokens[:, 1:])
        (loss / get_num_microbatches()).backward()
        losses.append(loss.detach())
    norm = torch.nn.utils.clip_grad_norm_(model[0].parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return {"lm loss": torch.stack([sum(losses), torch.tensor(float(len(losses)))])}, float(norm)


def _log(loss_dict, iteration, grad_norm):
    total, number = loss_dict["lm loss"]
    print(iteration, (total / number).item().hex(), grad_norm.hex())
    return False


if CORE == "0.12":

    def train_step(forward_step_func, data_iterator, model, optimizer, opt_param_scheduler, config):
        return _step(model, optimizer)

    def training_log(
        loss_dict, total_loss_dict, learning_rate, decoupled_learning_rate, iteration, loss_scale, report_memory_flag, skipped_iter, grad_norm, params_norm, num_zeros_in_grad
    ):
        return _log(loss_dict, iteration, grad_norm)

else:

    def train_step(
        forward_step_func, data_iterator, model, optimizer, opt_param_scheduler, config, forward_backward_func, iteration=None, **_of_main
    ):
        return _step(model, optimizer)

    def training_log(
        loss_dict, total_loss_dict, learning_rate, iteration, loss_scale, report_memory_flag, skipped_iter, grad_norm, params_norm, num_zeros_in_grad,
        max_attention_logit, pg_collection=None, is_first_iteration=False, **_of_018
    ):
        return _log(loss_dict, iteration, grad_norm)


def evaluate_and_print_results(prefix, forward_step_func, data_iterator, model, iteration, process_non_loss_data_func, config, verbose=False):
    model[0].eval()
    with torch.no_grad():
        tokens = torch.randint(VOCABULARY, (MICRO_BATCH, LENGTH))
        print(prefix, model[0](tokens, tokens)[1].item().hex())
    model[0].train()


def save_checkpoint_and_time(
    iteration, model, optimizer, opt_param_scheduler, num_floating_point_operations_so_far, checkpointing_context, non_persistent_ckpt=False, train_data_iterator=None
):
    torch.save(model[0].state_dict(), os.devnull)


def _call_step(model, optimizer, iteration):
    if CORE == "0.12":
        return train_step(None, None, model, optimizer, None, None)
    more = {"pg_collection": None, "p2p_communicator": None} if CORE == "main" else {}
    return train_step(None, None, model, optimizer, None, None, None, iteration=iteration, **more)


def _call_log(loss_dict, rate, iteration, grad_norm):
    if CORE == "0.12":
        return training_log(loss_dict, {}, rate, None, iteration, 1.0, False, 0, grad_norm, None, None)
    more = {} if CORE == "0.16" else {"seqlen_squared_sum_in_batch": None, "total_real_tokens_in_batch": None}
    if os.environ.get("PACKED"):
        lengths = [7.0, 4.0] * 3 * get_num_microbatches()
        more = {"seqlen_squared_sum_in_batch": sum(n * n for n in lengths), "total_real_tokens_in_batch": sum(lengths)}
    return training_log(loss_dict, {}, rate, iteration, 1.0, False, 0, grad_norm, None, None, None, **more)


def train(
    forward_step_func, model, optimizer, opt_param_scheduler, train_data_iterator, valid_data_iterator, process_non_loss_data_func, config, checkpointing_context, non_loss_data_func
):
    args = get_args()
    iteration = args.iteration
    callback = initialize_perf_monitor(args)
    while iteration < args.train_iters:
        update_num_microbatches(iteration)
        if iteration + 1 == int(os.environ.get("SKIPPED", "0")):
            iteration += 1
            continue
        args.curr_iteration = iteration
        if callback is not None:
            perf_monitor_start_iteration(iteration)
        loss_dict, grad_norm = _call_step(model, optimizer, iteration)
        if callback is not None:
            perf_monitor_end_iteration(iteration, None, None)
        iteration += 1
        _call_log(loss_dict, optimizer.param_groups[0]["lr"], iteration, grad_norm)
        if iteration == 3:
            evaluate_and_print_results("evaluation", None, None, model, iteration, None, None)
        if iteration == 4:
            save_checkpoint_and_time(iteration, model, optimizer, None, 0, None)
    perf_monitor_end_training(None, None)
    return iteration


def pretrain():
    torch.manual_seed(1)
    torch.set_num_threads(1)
    model = [Gpt()]
    optimizer = torch.optim.AdamW(model[0].parameters(), lr=1e-3)
    train(None, model, optimizer, None, None, None, None, None, None, None)


if os.environ.get("GONE") == "training_log":
    del training_log

    def _call_log(loss_dict, rate, iteration, grad_norm):
        return _log(loss_dict, iteration, grad_norm)
