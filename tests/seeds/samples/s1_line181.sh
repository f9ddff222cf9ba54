python test_profiler_mfu.py
