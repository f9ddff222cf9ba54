# 根据训练阶段调整测量频率
if training_phase == "warmup":
    measure_freq = 1000  # 预热阶段减少测量
elif training_phase == "main":
    measure_freq = 500   # 主要训练阶段
elif training_phase == "finetune":
    measure_freq = 200   # 微调阶段增加测量
