# 测试简化后的FLOPs计算
python scripts/test_simplified_flops.py
