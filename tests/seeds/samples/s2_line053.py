def calculate_precise_mfu(model, batch_size, seq_length, step_time, 
                         measurement_mode="smart", actual_flops=None):
    """
    支持多种测量模式：
    - "smart": 智能模式，首次使用profiler，后续使用估算+校准
    - "profiler": 每次都使用PyTorch profiler（高精度，高开销）
    - "estimate": 仅使用估算方法（低精度，无开销）
    - "hybrid": 混合模式，结合profiler和硬件计数器
    """
