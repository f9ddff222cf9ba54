# 优先使用attention_mask的长度（最准确）
if 'attention_mask' in batch_example:
    actual_seq_length = attention_mask.sum(dim=1).mean()
else:
    # 回退到输入长度
    actual_seq_length = input_ids.size(1)
