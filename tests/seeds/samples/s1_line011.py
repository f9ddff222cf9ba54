def calculate_mfu_with_profiler(model, batch_size: int, seq_length: int, step_time: float) -> float:
    """使用PyTorch Profiler计算MFU (Model FLOPs Utilization)

    MFU = 实际FLOPs/s / GPU峰值FLOPs/s
    """
    try:
        # 使用profiler测量FLOPs
        actual_flops = _measure_flops_with_profiler(model, batch_size, seq_length)

        if actual_flops <= 0:
            print("⚠️  Profiler无法测量FLOPs，返回0")
            return 0.0

        # 计算实际FLOPs/s
        actual_flops_per_second = actual_flops / step_time

        # 获取GPU峰值性能
        peak_flops_per_second = get_gpu_peak_flops()

        # 计算MFU
        mfu = actual_flops_per_second / peak_flops_per_second
        return min(mfu, 1.0)  # 限制在100%以内

    except Exception as e:
        print(f"Profiler MFU计算错误: {e}")
        return 0.0
