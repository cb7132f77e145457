# SPDX-License-Identifier: MIT
"""The echo workload of bench/run: servers under one load, in alternation."""
import collections
import json
import os
import re
import shutil
import statistics
import subprocess
import tempfile
import time

from harness import Broken, quartiles, verdict

# Server CPU per request: how far the median ratio may lie above the A/A row.
ECHO_MARGINS = {"async": 0.03, "fiber": 0.08}
SYSCALL_MARGIN = 0.02

EchoRow = collections.namedtuple("EchoRow", "connections deadline_ms")
ECHO_ROWS = (EchoRow(50, 0), EchoRow(1000, 0), EchoRow(50, 30000))

READS = ("read", "readv", "recvfrom", "recvmsg")
WRITES = ("write", "writev", "sendto", "sendmsg")
WAITS = ("epoll_wait", "epoll_pwait", "epoll_pwait2")


def server_command(bench, kind, row):
    if kind in bench.servers:
        return bench.servers[kind]
    if kind.startswith("plain"):
        return [bench.program("epoll_echo")]
    program, _, pool = kind.partition(" ")
    command = [bench.program("echo_" + program),
               "--deadline-ms", str(row.deadline_ms)]
    return command + (["--workers", "1"] if pool else [])


class Server:
    """A running server, pinned; leaving the block ends it."""

    def __init__(self, bench, kind, row, wrapper=(), **options):
        command = list(wrapper) + server_command(bench, kind, row)
        self.process = bench.start(command, bench.server_cpu,
                                   stdout=subprocess.PIPE, **options)
        self.pid = self.process.pid

    def __enter__(self):
        line = self.process.stdout.readline()
        found = re.match(r"port (\d+)$", line)
        if not found:
            self.stop()
            raise Broken(f"{' '.join(self.process.args)}: no port, "
                         f"but {line!r}")
        self.port = found.group(1)
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()


def load_command(bench, server, row, requests, linger_ms=0):
    return [bench.program("echo_load"), "--port", server.port,
            "--connections", str(row.connections),
            "--requests", str(requests), "--server-pid", str(server.pid),
            "--linger-ms", str(linger_ms)]


def sample_echo(bench, kind, row, requests):
    with Server(bench, kind, row) as server:
        return json.loads(bench.output(
            load_command(bench, server, row, requests), bench.load_cpu))


def time_echo_row(bench, row):
    """Rounds of all servers, each round beginning with another one."""
    kinds = ["plain", "fiber", "async", "fiber pool", "plain again"]
    rounds = 8 if bench.quick else 48
    requests = 8000 if bench.quick else 40000
    samples = {kind: [] for kind in kinds}
    for i in range(rounds):
        for k in range(len(kinds)):
            kind = kinds[(i + k) % len(kinds)]
            samples[kind].append(sample_echo(bench, kind, row, requests))
    return samples


def judge_echo_row(row, samples):
    cpu = {kind: [s["server_cpu_ns"] / s["requests"] for s in taken]
           for kind, taken in samples.items()}
    rows = []
    for kind in ("plain again", "async", "fiber", "fiber pool"):
        ratios = [a / b for a, b in zip(cpu[kind], cpu["plain"])]
        low, median, high = quartiles(ratios)
        rows.append({
            "kind": kind, "pairs": len(ratios), "ratio": median,
            "low": low, "high": high,
            # Of a median, from the spread: Gaussian, so only a rough guide.
            "error": 1.25 * (high - low) / 1.35 / len(ratios) ** 0.5,
            "ratios": ratios})
    for entry in rows:
        margin = ECHO_MARGINS.get(entry["kind"])
        entry["target"] = None if margin is None else rows[0]["ratio"] + margin
        entry["met"] = None if margin is None else \
            entry["ratio"] <= entry["target"]
    if row.deadline_ms != 0:
        for entry in rows:  # printed for comparison, not promised
            entry["target"] = entry["met"] = None
    servers = {}
    for kind, taken in samples.items():
        servers[kind] = {
            "cpu_us": statistics.median(cpu[kind]) / 1000,
            "requests_per_s": statistics.median(
                s["requests"] * 1e9 / s["elapsed_ns"] for s in taken),
            "p50_us": statistics.median(s["p50_ns"] for s in taken) / 1000,
            "p99_us": statistics.median(s["p99_ns"] for s in taken) / 1000}
    return {"connections": row.connections, "deadline_ms": row.deadline_ms,
            "requests": samples["plain"][0]["requests"],
            "ratios": rows, "servers": servers}


def echo_title(row):
    deadline = f"{row.deadline_ms // 1000} s deadlines" if row.deadline_ms \
        else "no deadline"
    return f"{row.connections} connections, {deadline}"


def print_echo_row(row, result):
    print(f"{echo_title(row)}; {result['requests']} requests a sample, server "
          f"CPU per request against plain")
    print(f"    {'':12} {'ratio':>7} {'quartiles':>15} {'error':>7} "
          f"{'target':>8}  met   {'cpu us':>7} {'req/s':>8} {'p50 us':>7} "
          f"{'p99 us':>7}")
    ratios = {entry["kind"]: entry for entry in result["ratios"]}
    for kind in ("plain", "plain again", "async", "fiber", "fiber pool"):
        left = " " * 49
        if kind in ratios:
            entry = ratios[kind]
            target = "" if entry["target"] is None else \
                f"<={entry['target']:.3f}"
            met = "" if entry["met"] is None else verdict(entry["met"])
            left = (f"{entry['ratio']:7.3f} "
                    f"{entry['low']:7.3f}-{entry['high']:.3f} "
                    f"{entry['error']:9.3f} {target:>8}  {met:3} ")
        server = result["servers"][kind]
        print(f"    {kind:12} {left:49}  {server['cpu_us']:7.2f} "
              f"{server['requests_per_s']:8.0f} {server['p50_us']:7.0f} "
              f"{server['p99_us']:7.0f}")


# Counting what a server does for a request.  Each count is the difference of a
# long and a short run, so that start-up, accepts and closes fall out; the load
# stays until the server has seen the closes.

LINGER_MS = 200


def count_with_perf(bench, kind, row, requests, events):
    """Counters of the server while the load runs, or None."""
    with Server(bench, kind, row) as server, \
            tempfile.NamedTemporaryFile("r") as report:
        command = ["perf", "stat", "-x", ",", "-o", report.name,
                   "-e", ",".join(events), "-p", str(server.pid), "--"]
        process = bench.start(
            command + load_command(bench, server, row, requests, LINGER_MS),
            bench.load_cpu, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        if process.wait() != 0:
            return None
        counts = {}
        for line in report:
            fields = line.strip().split(",")
            if len(fields) > 2 and fields[0].isdigit():
                counts[fields[2]] = int(fields[0])
        return counts


def syscall_events():
    return [f"syscalls:sys_enter_{name}" for name in READS + WRITES + WAITS] + \
        ["raw_syscalls:sys_enter"]


def perf_syscalls(bench, kind, row, requests):
    if not shutil.which("perf"):
        return None
    counts = count_with_perf(bench, kind, row, requests, syscall_events())
    if not counts or "raw_syscalls:sys_enter" not in counts:
        return None
    calls = {event.split("sys_enter_")[-1]: count
             for event, count in counts.items()}
    calls["all"] = calls.pop("raw_syscalls:sys_enter")
    return calls


def strace_syscalls(bench, kind, row, requests):
    if not shutil.which("strace"):
        return None
    with tempfile.NamedTemporaryFile("r") as report:
        wrapper = ["strace", "-D", "-f", "-c", "-U", "calls,name",
                   "-o", report.name]
        with Server(bench, kind, row, wrapper) as server:
            bench.output(load_command(bench, server, row, requests, LINGER_MS),
                         bench.load_cpu)
        # The detached tracer writes after the server is gone.
        for _ in range(100):
            calls = dict((name, int(count)) for count, name in
                         re.findall(r"^\s*(\d+) (\w+)$",
                                    open(report.name).read(), re.M))
            if "total" in calls:
                calls["all"] = calls.pop("total")
                return calls
            time.sleep(0.05)
    return None


def difference(count, bench, kind, row, short, long):
    first = count(bench, kind, row, short)
    second = count(bench, kind, row, long)
    if first is None or second is None:
        return None
    return {name: (second.get(name, 0) - first.get(name, 0)) / (long - short)
            for name in second}


def count_syscalls(bench, kind, row):
    short, long = (2000, 10000) if bench.quick else (10000, 90000)
    for source, count in (("perf", perf_syscalls), ("strace", strace_syscalls)):
        calls = difference(count, bench, kind, row, short, long)
        if calls is None:
            continue
        sums = {"reads": sum(calls.get(name, 0) for name in READS),
                "writes": sum(calls.get(name, 0) for name in WRITES),
                "waits": sum(calls.get(name, 0) for name in WAITS)}
        sums["other"] = calls["all"] - sum(sums.values())
        sums["source"] = source
        return sums
    return None


def perf_instructions(bench, kind, row, requests):
    if not shutil.which("perf"):
        return None
    counts = count_with_perf(bench, kind, row, requests, ["instructions:u"])
    return {"instructions": counts["instructions:u"]} \
        if counts and "instructions:u" in counts else None


def callgrind_instructions(bench, kind, row, requests):
    if not shutil.which("valgrind"):
        return None
    with tempfile.NamedTemporaryFile("r") as report:
        wrapper = ["valgrind", "--tool=callgrind",
                   "--callgrind-out-file=/dev/null"]
        with Server(bench, kind, row, wrapper, stderr=report) as server:
            bench.output(load_command(bench, server, row, requests, 1000),
                         bench.load_cpu)
        found = re.search(r"Collected\s*:\s*(\d+)", open(report.name).read())
        return {"instructions": int(found.group(1))} if found else None


def count_instructions(bench, kind, row):
    short, long = (1000, 4000) if bench.quick else (2000, 22000)
    for source, count in (("perf", perf_instructions),
                          ("callgrind", callgrind_instructions)):
        found = difference(count, bench, kind, row, short, long)
        if found is not None:
            return {"per_request": found["instructions"], "source": source}
    return None


def print_counts(row, counts):
    plain = counts["plain"]["syscalls"] or {"reads": 0, "writes": 0}
    print(f"{echo_title(row)}; system calls per request")
    print(f"    {'':12} {'reads':>7} {'writes':>7} {'waits':>7} {'other':>7} "
          f"{'r+w against plain':>18}  met   user instructions")
    for kind, entry in counts.items():
        calls = entry["syscalls"]
        if calls is None:
            text = f"{'not counted here: needs perf or strace':58}"
        else:
            text = (f"{calls['reads']:7.3f} {calls['writes']:7.3f} "
                    f"{calls['waits']:7.3f} {calls['other']:7.3f} ")
            extra = calls["reads"] + calls["writes"] - \
                plain["reads"] - plain["writes"]
            entry["extra"] = extra
            entry["met"] = abs(extra) <= SYSCALL_MARGIN
            text += f"{extra:+18.3f}  " + \
                (f"{verdict(entry['met']):4}" if kind != "plain" else " " * 4)
        instructions = entry["instructions"]
        text += f"  {instructions['per_request']:.0f} " \
            f"({instructions['source']})" if instructions else \
            "  not counted here: needs perf counters or valgrind"
        print(f"    {kind:12} {text}")


def run_echo(bench):
    results = []
    for row in ECHO_ROWS:
        result = judge_echo_row(row, time_echo_row(bench, row))
        print_echo_row(row, result)
        results.append(result)
    for row, result in zip(ECHO_ROWS, results):
        counts = {kind: {"syscalls": count_syscalls(bench, kind, row),
                         "instructions": count_instructions(bench, kind, row)}
                  for kind in ("plain", "async", "fiber")}
        print_counts(row, counts)
        result["counts"] = counts
    return {"rows": results}
