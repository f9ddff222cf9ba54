import json
import pandas as pd
import matplotlib.pyplot as plt

# 读取 JSON 汇总
with open('logs/perf_monitor/perf_summary_*.json') as f:
    data = json.load(f)

# 转换为 DataFrame
df = pd.DataFrame(data['iteration_logs'])

# 绘制 TFLOPS 曲线
plt.figure(figsize=(10, 6))
plt.plot(df['iteration'], df['TFLOPS_per_GPU'])
plt.xlabel('Iteration')
plt.ylabel('TFLOPS per GPU')
plt.title('Training Performance')
plt.show()

# 统计分析
print(f"Average TFLOPS: {df['TFLOPS_per_GPU'].mean():.2f}")
print(f"Peak TFLOPS: {df['TFLOPS_per_GPU'].max():.2f}")
print(f"Throughput: {df['tokens_per_sec'].mean():.0f} tokens/s")
