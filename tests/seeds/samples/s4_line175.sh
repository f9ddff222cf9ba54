# 启动训练并输出到 TensorBoard
python flagscale/train/train_gpt.py \
    --enable-perf-monitor \
    --tensorboard \
    --tensorboard-dir ./tb_logs \
    --train-iters 100

# 查看 TensorBoard
tensorboard --logdir=./tb_logs
