# 及时清理profiler内存
with torch.profiler.profile(...) as prof:
    # profiling代码
    pass
del prof  # 立即释放内存
torch.cuda.empty_cache()  # 清理GPU缓存
