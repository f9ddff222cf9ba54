# 创建TrainingMonitor
monitor = TrainingMonitor("./outputs", config, flops_profile_freq=500)

# 在训练循环中
for step in range(total_steps):
    # ... 训练代码

    # 记录步骤（自动处理MFU计算）
    monitor.log_step(step, epoch, loss, grad_norm, lr, attention_mask)
