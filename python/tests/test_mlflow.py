# SPDX-License-Identifier: Apache-2.0
"""Real MLflow: metrics reach the user's run with their step."""

import flopmeter
import pytest


@pytest.fixture
def client(tmp_path, monkeypatch):
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow.set_tracking_uri((tmp_path / "mlruns").as_uri())
    mlflow.set_experiment("flopmeter")
    yield mlflow.MlflowClient()
    while mlflow.active_run() is not None:
        mlflow.end_run()


def train(directory, **options):
    with flopmeter.Monitor(directory, peak_tflops=0.001, console=False, **options) as monitor:
        for step in range(5):
            with monitor.step(tokens=100, samples=4, step=10 * step, flops=1_000_000):
                pass


def test_metrics_reach_the_active_run_with_their_step(client, tmp_path):
    import mlflow

    with mlflow.start_run() as run:
        train(tmp_path / "run", mlflow=True)
    for name in ("mfu", "mfu_percent", "step_time", "steps_per_second", "tokens_per_second", "samples_per_second"):
        history = client.get_metric_history(run.info.run_id, f"perf/{name}")
        assert [point.step for point in history] == [0, 10, 20, 30, 40], name
        assert all(point.value > 0 for point in history)


def test_nothing_is_logged_without_a_run_or_a_request(client, tmp_path):
    import mlflow

    train(tmp_path / "none", mlflow=True)
    assert mlflow.active_run() is None
    with mlflow.start_run() as run:
        train(tmp_path / "unasked")
    assert client.get_run(run.info.run_id).data.metrics == {}
