# 1. 结构测试（不需要 torch）
python test_perf_simple.py

# 2. 单元测试（需要 torch）
python test_perf_monitor_unit.py

# 3. 集成测试
./test_perf_monitor.sh
