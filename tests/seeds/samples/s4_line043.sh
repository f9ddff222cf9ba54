# 使用包含性能监控的配置文件
python run.py \
  --config-path ./examples/aquila/conf \
  --config-name train \
  train=7b_with_perf_monitor \
  action=run \
  train.data.data_path=../pile_wikipedia_demo/pile_wikipedia_demo
