from training.utils.monitor import profile_model_flops

# 计算FLOPs（现在使用估算方法）
flops = profile_model_flops(model, batch_example)

# 计算MFU
mfu = calculate_mfu(flops, compute_time, gpu_peak_flops)
