from training.utils.monitor import calculate_mfu_with_profiler

# 直接计算MFU
mfu = calculate_mfu_with_profiler(model, batch_size=4, seq_length=512, step_time=0.1)
print(f"MFU: {mfu:.4f}")
