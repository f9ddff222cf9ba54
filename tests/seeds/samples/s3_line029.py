def profile_model_flops(model, batch_example: Dict) -> float:
    """使用估算方法计算模型FLOPs（用于MFU计算）"""
    # 直接调用估算方法，不再使用profiler
