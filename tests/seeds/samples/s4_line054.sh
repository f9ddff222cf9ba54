bash outputs/logs/scripts/host_0_localhost_run.sh
