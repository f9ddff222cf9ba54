def _measure_flops_with_profiler(model, batch_size: int, seq_length: int) -> float:
    """使用PyTorch Profiler测量FLOPs"""
    try:
        # 创建模拟的batch用于profiling
        device = next(model.parameters()).device
        dummy_batch = _create_dummy_batch_for_profiling(batch_size, seq_length, device)

        model.eval()
        with torch.profiler.profile(
            activities=[torch.profiler.ProfilerActivity.CUDA],
            record_shapes=True,
            with_flops=True,
            profile_memory=False
        ) as prof:
            with torch.no_grad():
                _ = model(**dummy_batch)

        # 收集FLOPs统计
        total_flops = 0
        for event in prof.events():
            if hasattr(event, 'flops') and event.flops > 0:
                total_flops += event.flops

        return float(total_flops)

    except Exception as e:
        print(f"Profiler FLOPs测量错误: {e}")
        return 0.0
