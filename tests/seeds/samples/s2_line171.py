# 仅在主进程进行profiling，其他进程使用广播结果
if dist.get_rank() == 0:
    flops = measure_with_profiler()
    dist.broadcast(flops_tensor, src=0)
else:
    dist.broadcast(flops_tensor, src=0)
    flops = flops_tensor.item()
