class TrainingMonitor:
    def __init__(self, output_dir: str, config: Dict = None, log_file: str = "training_log.json", flops_profile_freq: int = 500):
        # FLOPs profiling频率配置
        self.flops_profile_freq = flops_profile_freq
        # ... 其他初始化代码

    def log_step(self, step: int, epoch: int, loss: float, grad_norm: float, learning_rate: float, attention_mask=None, skip_wandb=False):
        # ... 其他日志记录代码

        # 使用profiler计算MFU
        if step % self.flops_profile_freq == 0:
            # 每flops_profile_freq步使用profiler计算MFU
            mfu = calculate_mfu_with_profiler(self.model_ref, self.batch_size, current_seq_length, step_time)
            print(f"🔍 步骤 {step}: 使用profiler计算MFU = {mfu:.4f}")
        else:
            # 其他步骤使用缓存的MFU值或返回0
            mfu = 0.0
