# 实时查看性能指标
tail -f logs/perf_monitor/perf_realtime.log

# 使用 watch 命令
watch -n 1 tail -20 logs/perf_monitor/perf_realtime.log
