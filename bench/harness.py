# SPDX-License-Identifier: MIT
"""What all workloads of bench/run need: programs, processors, medians."""
import os
import statistics
import subprocess


class Broken(Exception):
    """A program did not do its work."""


class Bench:
    """What every workload needs: programs, processors, sizes."""

    def __init__(self, build, quick):
        self.folder = os.path.join(build, "bench")
        self.quick = quick
        self.servers = {}  # commands of echo and HTTP servers of other kinds
        self.peers = None  # versus.Peers, once it was asked for
        cpus = sorted(os.sched_getaffinity(0))
        self.server_cpu = cpus[0]
        self.load_cpu = cpus[1] if len(cpus) > 1 else cpus[0]
        self.pool_cpus = {self.server_cpu, self.load_cpu}

    def program(self, name):
        path = os.path.join(self.folder, name)
        if not os.access(path, os.X_OK):
            raise Broken(f"{path} is not built")
        return path

    def start(self, command, cpu, **options):
        """`cpu` is a processor, or a set of them."""
        cpus = cpu if isinstance(cpu, set) else {cpu}
        return subprocess.Popen(
            command, text=True, preexec_fn=lambda: os.sched_setaffinity(0, cpus),
            **options)

    def output(self, command, cpu, timeout=600):
        """Standard output of a program that has to succeed."""
        process = self.start(command, cpu, stdout=subprocess.PIPE)
        try:
            text, _ = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            raise Broken(f"{command[0]} did not end within {timeout} s")
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
        if process.returncode != 0:
            raise Broken(f"{' '.join(command)}: exit {process.returncode}")
        return text


def quartiles(values):
    if len(values) < 2:
        return values[0], values[0], values[0]
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return low, statistics.median(values), high


def verdict(met):
    return "yes" if met else "NO"


def median_of(values):
    return statistics.median(values) if values else None
