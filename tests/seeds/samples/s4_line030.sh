python run.py \
  --config-path ./examples/aquila/conf \
  --config-name train \
  action=run \
  train.data.data_path=../pile_wikipedia_demo/pile_wikipedia_demo \
  train.system.enable_perf_monitor=true \
  train.system.perf_log_interval=10 \
  train.system.perf_log_dir=./outputs/logs/perf_monitor
