# 决定是否进行实时FLOPs测量 - 大幅减少频率以避免性能开销
should_measure_flops = (
    not flops_profiled or  # 仅第一次测量
    (effective_step > 0 and effective_step % 500 == 0)  # 每500个有效步骤重新测量
)
