# 前向传播FLOPs估算
flops_per_token = 2.5 * param_count
forward_flops = flops_per_token * batch_size * seq_length

# 反向传播FLOPs估算
backward_flops = 2 * forward_flops

# 总FLOPs
total_flops = forward_flops + backward_flops
