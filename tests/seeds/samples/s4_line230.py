def calculate_new_model_flops(self, batch_size, seq_length, ...):
    """计算新模型的 FLOPS"""
    # 添加特定模型的 FLOPS 计算公式
    attention_flops = ...
    ffn_flops = ...
    total_flops = attention_flops + ffn_flops
    return total_flops * 3  # 前向 + 反向 + 梯度
