# 创建TrainingMonitor时指定频率
monitor = TrainingMonitor(
    output_dir="./outputs", 
    config=config, 
    flops_profile_freq=500
)
