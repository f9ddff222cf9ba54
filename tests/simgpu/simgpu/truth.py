# SPDX-License-Identifier: Apache-2.0
"""Truth about the simulated device, per step and phase of the script.

The script places marks. Mark `step` begins a step; every other mark begins a phase that lasts to the next mark.
A mark's device time is when an event recorded there would be reached.
"""

import bisect
import json
from collections import namedtuple
from dataclasses import asdict, dataclass, field

Kernel = namedtuple("Kernel", "name stream kind call enqueued start end flops bytes ideal_ns graph")
Call = namedtuple("Call", "name begin end stream thread during_capture")
Mark = namedtuple("Mark", "name host device log_size")

OUT_OF_STEP = ("evaluation", "checkpoint", "end")
SYNCHRONIZATIONS = ("item", "copy", "synchronize_stream", "synchronize_device", "synchronize_event", "cpu_fallback")
# Cause of idle time by what the host did meanwhile; inside a synchronization it is `synchronization`.
IDLE_CAUSE = {"data": "data", "step": "loop", "loop": "loop"}


@dataclass
class Activity:
    """Seconds of one device interval; busy + communication + copies + idle = seconds."""

    seconds: float = 0.0
    busy: float = 0.0  # a kernel computes
    communication: float = 0.0  # exposed: a collective runs and nothing computes
    copies: float = 0.0  # exposed: only copies between host and device run
    idle: float = 0.0
    idle_by: dict = field(default_factory=dict)  # cause: seconds
    idle_after_synchronization: float = 0.0  # idle time that begins while the host waits


@dataclass
class Step(Activity):
    """One step: its activity without out-of-step phases, and what it executed."""

    index: int = 0
    phases: dict = field(default_factory=dict)  # device seconds
    host_phases: dict = field(default_factory=dict)
    host_seconds: float = 0.0
    synchronizations: int = 0
    synchronization_seconds: float = 0.0  # that the host waited
    flops: float = 0.0  # executed in matmuls
    ideal_seconds: float = 0.0  # of these FLOPs at the peak of their dtype
    launches: int = 0
    kernels: dict = field(default_factory=dict)  # seconds of "matmul", "memory", and "optimizer" kernels
    lag: float = 0.0  # device time minus host time at the step's end

    @property
    def utilization(self):
        """Executed matmul FLOPs at peak over the step's time (HFU)."""
        return self.ideal_seconds / self.seconds


class Truth:
    """Kernels, calls, and marks of a run, and what follows from them: `steps` and `out_of_step`."""

    def __init__(self, kernels, calls, marks, settings):
        self.kernels = [Kernel(*row) for row in kernels]
        self.calls = [Call(*row) for row in calls]
        self.marks = [Mark(*row) for row in marks]
        self.settings = settings
        self.losses = []
        self._segments = _segments(self.kernels)
        self._host = _host_timeline(self.marks, self.calls)
        self.steps = []
        self.out_of_step = []  # (name, Activity, index of the step before)
        self._walk()

    def _walk(self):
        step = None
        for mark, following in zip(self.marks, self.marks[1:]):
            if mark.name == "step":
                step = Step(index=len(self.steps))
                self.steps.append(step)
            activity = self.activity(mark.device, following.device)
            if mark.name in OUT_OF_STEP:
                self.out_of_step.append((mark.name, activity, len(self.steps) - 1))
                continue
            if step is not None:
                self._add(step, mark, following, activity)

    def _add(self, step, mark, following, activity):
        for name in ("seconds", "busy", "communication", "copies", "idle", "idle_after_synchronization"):
            setattr(step, name, getattr(step, name) + getattr(activity, name))
        for cause, seconds in activity.idle_by.items():
            step.idle_by[cause] = step.idle_by.get(cause, 0.0) + seconds
        host = (following.host - mark.host) / 1e9
        step.phases[mark.name] = step.phases.get(mark.name, 0.0) + activity.seconds
        step.host_phases[mark.name] = step.host_phases.get(mark.name, 0.0) + host
        step.host_seconds += host
        step.lag = (following.device - following.host) / 1e9
        for kernel in self.kernels[mark.log_size : following.log_size]:
            step.launches += 1
            step.flops += kernel.flops
            step.ideal_seconds += kernel.ideal_ns / 1e9
            if kernel.kind == "kernel":
                part = "optimizer" if mark.name == "optimizer" else "matmul" if kernel.flops else "memory"
                step.kernels[part] = step.kernels.get(part, 0.0) + (kernel.end - kernel.start) / 1e9
        for call in self.calls:
            if call.name in SYNCHRONIZATIONS and mark.host <= call.begin < following.host:
                step.synchronizations += 1
                step.synchronization_seconds += (call.end - call.begin) / 1e9

    def activity(self, begin, end):
        """Activity of the device between two times (ns of the monotonic clock)."""
        result = Activity(seconds=(end - begin) / 1e9)
        first = max(0, bisect.bisect_right(self._segments, (begin, float("inf"))) - 1)
        for start, stop, state in self._segments[first:]:
            if start >= end:
                break
            low, high = max(start, begin), min(stop, end)
            if high <= low:
                continue
            if state != "idle":
                setattr(result, state, getattr(result, state) + (high - low) / 1e9)
                continue
            result.idle += (high - low) / 1e9
            for cause, seconds in self._causes(low, high):
                result.idle_by[cause] = result.idle_by.get(cause, 0.0) + seconds
            if self._host_activity(start) == "synchronization":
                result.idle_after_synchronization += (high - low) / 1e9
        return result

    def _host_activity(self, time):
        found = bisect.bisect_right(self._host, (time, "\U0010ffff")) - 1
        return self._host[found][1] if found >= 0 else "loop"

    def _causes(self, low, high):
        found = max(0, bisect.bisect_right(self._host, (low, "\U0010ffff")) - 1)
        for position in range(found, len(self._host)):
            start, cause = self._host[position]
            stop = self._host[position + 1][0] if position + 1 < len(self._host) else high
            if start >= high:
                return
            if min(stop, high) > max(start, low):
                yield cause, (min(stop, high) - max(start, low)) / 1e9

    def mean(self, skip=3):
        """Mean of the steps after the first `skip`, as a Step."""
        steps = self.steps[skip:]
        total = Step(index=len(steps))
        for step in steps:
            for name, value in vars(step).items():
                if name == "index":
                    continue
                if isinstance(value, dict):
                    into = getattr(total, name)
                    for key, part in value.items():
                        into[key] = into.get(key, 0.0) + part / len(steps)
                else:
                    setattr(total, name, getattr(total, name) + value / len(steps))
        return total

    def counters(self, in_steps=False):
        """Number of calls other than launches; those during a capture also count as `…_during_capture`.

        With `in_steps`, only calls after the first mark `step`, without those of the setup.
        """
        begin = next((mark.host for mark in self.marks if mark.name == "step"), 0) if in_steps else 0
        counts = {}
        for call in self.calls:
            if call.begin < begin:
                continue
            counts[call.name] = counts.get(call.name, 0) + 1
            if call.during_capture:
                counts[call.name + "_during_capture"] = counts.get(call.name + "_during_capture", 0) + 1
        return counts

    def save(self, path, kernels=False):
        """Writes steps, out-of-step phases, marks, counters, losses, settings; on request every kernel."""
        content = {
            "steps": [asdict(step) for step in self.steps],
            "out_of_step": [
                {"name": name, "after_step": after, **asdict(activity)} for name, activity, after in self.out_of_step
            ],
            "marks": [mark._asdict() for mark in self.marks],
            "counters": self.counters(),
            "counters_in_steps": self.counters(in_steps=True),
            "losses": self.losses,
            "settings": self.settings,
        }
        if kernels:
            content["kernels"] = [kernel._asdict() for kernel in self.kernels]
        with open(path, "w") as file:
            json.dump(content, file)


def _segments(kernels):
    """The device's time cut at every begin and end of a kernel: (start, stop, state)."""
    edges = []
    for kernel in kernels:
        kind = {"kernel": "busy", "communication": "communication"}.get(kernel.kind, "copies")
        edges += [(kernel.start, 1, kind), (kernel.end, -1, kind)]
    edges.sort()
    running = {"busy": 0, "communication": 0, "copies": 0}
    segments = []
    last = float("-inf")
    for time, change, kind in edges:
        if time > last:
            state = next((name for name, count in running.items() if count), "idle")
            segments.append((last, time, state))
            last = time
        running[kind] += change
    segments.append((last, float("inf"), "idle"))
    return segments


def _host_timeline(marks, calls):
    """Activity of the host: (begin, cause of idle time), in order."""
    begins = [mark.host for mark in marks]
    timeline = [(mark.host, _cause(mark.name)) for mark in marks]
    for call in calls:
        if call.name in SYNCHRONIZATIONS:
            before = bisect.bisect_right(begins, call.begin) - 1
            timeline.append((call.begin, "synchronization"))
            timeline.append((call.end, _cause(marks[before].name) if before >= 0 else "loop"))
    return sorted(timeline, key=lambda entry: entry[0])


def _cause(mark):
    return mark if mark in OUT_OF_STEP else IDLE_CAUSE.get(mark, "launch")
