# SPDX-License-Identifier: MIT
"""The peers workload of bench/run: Pirn and others at the same work.

Each row is run by every contestant that has an equivalent, each a process of
its own, in rounds that begin with another one each time.  A pair is Pirn and a
peer of the same round; the ratio says how many times Pirn's figure the peer's
is, so that above 1 Pirn is ahead.  README.md says what the rows do and how each
peer does them.
"""
import collections
import json
import os
import re
import shutil
import statistics
import subprocess
import time

import echo
from harness import Broken, quartiles, verdict

PEERS = ("go", "tokio", "asio", "uv", "st", "context", "uring", "plain")
TITLES = {
    "go": "Go", "tokio": "Tokio", "asio": "Boost.Asio", "uv": "libuv",
    "st": "State Threads", "context": "Boost.Context",
    "uring": "plain io_uring", "plain": "plain C"}
PIRN = ("Pirn", "Pirn fibers")

# One contestant of a row: a command, and the printed name of each value.
Entry = collections.namedtuple("Entry", "command names")

# A value of a row: its name in the table, and in what a peer prints.
Value = collections.namedtuple("Value", "title unit peer_name")

# `pirn` maps a title to (program, name of the row there, form of the command).
Row = collections.namedtuple(
    "Row", "group name workers values pirn peers rounds")


def times(name):
    """What passed, and the processor time of all threads."""
    return (Value(name, "ns", name), Value(name + ".cpu", "ns", name + ".cpu"))


def percentiles(name, *more):
    return tuple(Value(f"{name}_{end}", "ns", f"{name}_{end}")
                 for end in ("p50", "p99") + more)


def pool_row(group, program, name, peers, tasks=None, fibers=None, values=None,
             workers=(1, 2), rounds=7):
    pirn = {}
    if tasks:
        pirn["Pirn"] = (program, tasks, "pool")
    if fibers:
        pirn["Pirn fibers"] = (program, fibers, "pool")
    return Row(group, name, workers, values or times(name), pirn, peers, rounds)


def single_row(group, program, name, peers, tasks=None, fibers=None,
               peer_name=None, rounds=7):
    """On the calling thread, a current-thread runtime; by processor time."""
    pirn = {}
    if tasks:
        pirn["Pirn"] = (program, tasks, "single")
    if fibers:
        pirn["Pirn fibers"] = (program, fibers, "single")
    values = (Value(name, "ns", peer_name or name + ".cpu"),)
    return Row(group, name, (0,), values, pirn, peers, rounds)


MEMORY = (Value("memory_task", "bytes", "memory_task"),
          Value("memory_start", "ns", "memory_start.cpu"))

ROWS = (
    pool_row("spawn", "bench_pool_spawn", "spawn_burst",
             ("go", "tokio", "asio"), "spawn_burst_async", "spawn_burst_fiber"),
    pool_row("spawn", "bench_pool_spawn", "spawn_batch",
             ("go", "tokio", "asio"), "spawn_batch_async", "spawn_batch_fiber"),
    pool_row("spawn", "bench_pool_spawn", "spawn_outside",
             ("go", "tokio", "asio"), "spawn_outside_async"),
    pool_row("spawn", "bench_pool_spawn", "chain",
             ("go", "tokio", "asio"), "chain_async"),
    pool_row("spawn", "bench_pool_spawn", "skynet",
             ("go", "tokio", "asio"), "skynet_async", "skynet_fiber"),
    pool_row("turns", "bench_pool_pairs", "ping_pong", ("go", "tokio"),
             "pairs_async", "pairs_fiber"),
    pool_row("turns", "bench_pool_turns", "yield_1000", ("go", "tokio", "asio"),
             "yield_async_1000", "yield_fiber_1000"),
    single_row("single", "bench_task", "spawn_batch", ("tokio", "asio", "st"),
               "task/spawn_async", "task/spawn_fiber"),
    single_row("single", "bench_task", "yield_1000", ("tokio", "asio", "st"),
               "task/yield_async_1000", "task/yield_fiber_1000"),
    single_row("switch", "bench_switch", "switch", ("context", "st", "plain"),
               fibers="switch/raw_one_way"),
    pool_row("sync", "bench_sync", "mutex_lock", ("go", "tokio", "st"),
             fibers="mutex_lock", workers=(1,)),
    pool_row("sync", "bench_sync", "mutex_lock_16", ("go", "tokio"),
             fibers="mutex_lock_16"),
    pool_row("channel", "bench_channel", "mpsc_1", ("go", "tokio"),
             fibers="mpsc_1"),
    pool_row("channel", "bench_channel", "mpsc_4", ("go", "tokio"),
             fibers="mpsc_4"),
    pool_row("wake", "bench_pool_wake", "wake",
             ("go", "tokio", "asio", "uv", "plain"), fibers="wake",
             values=percentiles("wake")),
    single_row("timer", "bench_timer", "timer_1",
               ("go", "tokio", "asio", "uv", "plain"),
               "timer/insert_cancel_1_live", peer_name="timer_1"),
    single_row("timer", "bench_timer", "timer_1m_in_order",
               ("go", "tokio", "asio", "uv", "plain"),
               "timer/insert_cancel_1m_live_in_order",
               peer_name="timer_1m_in_order", rounds=5),
    single_row("timer", "bench_timer", "timer_1m_random",
               ("go", "tokio", "asio", "uv", "plain"),
               "timer/insert_cancel_1m_live_random",
               peer_name="timer_1m_random", rounds=5),
    pool_row("timer", "bench_pool_late", "timer_late",
             ("go", "tokio", "asio", "uv"), "late_async", "late_fiber",
             values=percentiles("timer_late", "cpu"), rounds=3),
    Row("memory", "memory", (0,), MEMORY,
        {"Pirn": ("bench_memory", "stackless", "memory"),
         "Pirn fibers": ("bench_memory", "fiber", "memory")},
        ("go", "tokio", "asio", "st"), 3),
)
# What is promised: the least ratio of a value, on so many workers, of what Pirn
# runs to each of these peers.  Where it is only not to be behind, the upper
# quartile is what counts (`by`): noise alone puts half of the medians below 1.
Target = collections.namedtuple("Target", "value workers base peers least by",
                                defaults=("ratio",))

BOTH = ("Go", "Tokio")
ALL = ("Go", "Tokio", "Boost.Asio", "libuv")
ON_EPOLL = ALL + ("State Threads",)
TARGETS = (
    Target("spawn_burst", 1, "Pirn", BOTH, 6),
    Target("spawn_burst", 2, "Pirn", ("Go",), 3),
    Target("spawn_batch", 1, "Pirn", BOTH, 6),
    Target("spawn_batch", 2, "Pirn", ("Go",), 3),
    Target("spawn_outside", 1, "Pirn", BOTH, 4),
    Target("spawn_outside", 2, "Pirn", BOTH, 4),
    Target("chain", 1, "Pirn", BOTH, 3),
    Target("chain", 2, "Pirn", BOTH, 3),
    Target("ping_pong", 1, "Pirn", BOTH, 2.2),
    Target("ping_pong", 2, "Pirn", BOTH, 1.5),
    Target("yield_1000", 1, "Pirn", ("Tokio",), 1 / 0.35),
    Target("yield_1000", 1, "Pirn fibers", ("Tokio",), 2),
    Target("skynet", 1, "Pirn", ALL, 1 / 0.3),
    Target("skynet", 2, "Pirn", ALL, 1 / 0.3),
    Target("timer_1m_in_order", 0, "Pirn", ("Go, a new timer",), 4),
    Target("timer_1m_in_order", 0, "Pirn", ("plain C",), 1 / 1.4),
    Target("timer_late_p50", 1, "Pirn", ALL, 4),
    Target("timer_late_p99", 1, "Pirn", ALL, 2),
    Target("timer_late_cpu", 1, "Pirn", ALL, 1, "high"),
    Target("wake_p50", 1, "Pirn fibers", ALL, 1, "high"),
    Target("wake_p99", 1, "Pirn fibers", ALL, 1, "high"),
    Target("mpsc_1", 1, "Pirn fibers", BOTH, 1.8),
    Target("mpsc_1", 2, "Pirn fibers", BOTH, 1.8),
    Target("mpsc_4", 1, "Pirn fibers", BOTH, 1.8),
    Target("mpsc_4", 2, "Pirn fibers", BOTH, 1.8),
    Target("mutex_lock", 1, "Pirn fibers", ("Go",), 1 / 1.5),
    Target("mutex_lock_16", 2, "Pirn fibers", ("Go",), 1 / 1.2),
    Target("mutex_lock_16", 2, "Pirn fibers", ("Tokio",), 4),
    Target("memory_start", 0, "Pirn", ("Tokio",), 3),
    Target("cpu_us", None, "Pirn", ON_EPOLL, 1, "high"),
    Target("cpu_us", None, "Pirn fibers", ON_EPOLL, 1, "high"),
    Target("p99_us", None, "Pirn", ON_EPOLL, 1, "high"),
    Target("p99_us", None, "Pirn fibers", ON_EPOLL, 1, "high"),
)
GROUPS = tuple(dict.fromkeys(row.group for row in ROWS)) + ("echo", "http")

# Those that must have a worker: Go and the C++ context count from one.
LEAST_WORKERS = {"go": 1}
# Those that have one thread whatever they are asked for.
ONE_THREAD = ("uv", "st", "plain", "context", "uring")


def workload_names():
    return ("peers",) + tuple("peers:" + group for group in GROUPS)


class Peers:
    """The programs in bench/peers, as far as they could be built."""

    def __init__(self, bench):
        self.folder = os.path.join(bench.folder, "peers")
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                              "peers", "build")
        built = subprocess.run([script, self.folder], text=True,
                               stdout=subprocess.PIPE)
        if built.returncode != 0:
            raise Broken(f"{script}: exit {built.returncode}")
        self.left_out = built.stdout.splitlines()
        lines = open(os.path.join(self.folder, "versions")).read().splitlines()
        self.versions = dict(line.split(": ", 1) for line in lines)

    def has(self, peer):
        return peer in self.versions

    def command(self, peer, row, workers=0, *more):
        workers = max(workers, LEAST_WORKERS.get(peer, 0))
        return [os.path.join(self.folder, "peer_" + peer), row,
                "--workers", str(workers)] + list(more)

    def print(self):
        for line in self.left_out:
            print(line)
        for peer, version in self.versions.items():
            print(f"peer      {TITLES[peer]}: {version}")


# One process of one contestant.

def run_entry(bench, entry, cpus):
    """Values of one process: {printed name: median}, and what it cost."""
    values = collections.defaultdict(list)
    cost = {}
    command = [bench.program("cost")] + entry.command
    for line in bench.output(command, cpus).splitlines():
        item = json.loads(line)
        if "cost" in item:
            cost = item["cost"]
        elif "value" in item:
            values[item["name"]].append(item["value"])
    taken = {name: statistics.median(of) for name, of in values.items()}
    missing = [name for name in entry.names if name not in taken]
    if missing:
        raise Broken(f"{' '.join(entry.command)}: no {', '.join(missing)}")
    return [taken[name] for name in entry.names], cost


def pirn_entry(bench, row, workers, program, name, form):
    quick = ["--quick"] if bench.quick else []
    path = bench.program(program)
    if form == "memory":
        fibers = name == "fiber"
        count = (200000 if fibers else 1000000) // (10 if bench.quick else 1)
        size = "rss" if fibers else "total"
        option = "--fibers" if fibers else "--stackless"
        return Entry([path, option, str(count)],
                     [f"memory/{name}_{size}", f"memory/{name}_start"])
    if form == "single":
        return Entry([path, "--only", name] + quick, [name])
    samples = ["--samples", "1" if bench.quick else "2"]
    ends = [value.title[len(row.name):] for value in row.values]
    return Entry([path, "--only", name, "--workers", str(workers)] + samples +
                 quick, [f"pool{workers}/{name}{end}" for end in ends])


def peer_entry(bench, peers, row, workers, peer):
    more = ["--samples", "1" if bench.quick else "2"]
    if bench.quick:
        more.append("--quick")
    return Entry(peers.command(peer, row.name, workers, *more),
                 [value.peer_name for value in row.values])


GO_NEW_TIMER = "Go, a new timer"


def entries_of(bench, peers, row, workers):
    entries = {title: pirn_entry(bench, row, workers, *pirn)
               for title, pirn in row.pirn.items()}
    for peer in row.peers:
        if peers.has(peer) and (peer not in ONE_THREAD or workers <= 1):
            entries[TITLES[peer]] = \
                peer_entry(bench, peers, row, workers, peer)
    if row.name.startswith("timer_1") and peers.has("go"):
        new = row.name + "_new"
        entry = peer_entry(bench, peers, row, workers, "go")
        entries[GO_NEW_TIMER] = Entry(
            [new if word == row.name else word for word in entry.command],
            [new])
    return entries


def alternate(take, names, rounds):
    """Rounds of all, each beginning with another one: {name: [what it took]}.
    One that breaks is named and left out."""
    taken = {name: [] for name in names}
    for i in range(rounds):
        order = list(taken)
        for k in range(len(order)):
            name = order[(i + k) % len(order)]
            try:
                taken[name].append(take(name))
            except Broken as error:
                print(f"peers: {name} is left out: {error}")
                del taken[name]
    return taken


# Figures from samples.

def compare(titles, units, taken):
    """`taken` maps a contestant to a list of ([value...], cost), by rounds."""
    figures = []
    for i, title in enumerate(titles):
        samples = {name: [values[i] for values, _ in rounds]
                   for name, rounds in taken.items()}
        contestants = {name: {
            "median": statistics.median(of), "min": min(of), "max": max(of),
            "samples": of} for name, of in samples.items()}
        ratios = {}
        for base in PIRN:
            if base not in samples:
                continue
            ratios[base] = {}
            for name in samples:
                if name not in PIRN:
                    pairs = [a / b for a, b in
                             zip(samples[name], samples[base])]
                    low, median, high = quartiles(pairs)
                    ratios[base][name] = {"ratio": median, "low": low,
                                          "high": high, "pairs": len(pairs)}
        figures.append({"value": title, "unit": units[i],
                        "contestants": contestants, "ratios": ratios})
    costs = {name: {what: statistics.median(cost[what] for _, cost in rounds)
                    for what in rounds[0][1]}
             for name, rounds in taken.items() if rounds}
    return figures, costs


def ratio_text(ratio):
    if ratio is None:
        return ""
    return f"{ratio['ratio']:7.2f} {ratio['low']:6.2f}-{ratio['high']:.2f}"


def print_figure(title, figure, cpu=None):
    """`cpu` is the figure of the processor time of the same thing."""
    bases = [base for base in PIRN if base in figure["ratios"]]
    heads = "".join(f"{'to ' + base:>22}" for base in bases)
    print(f"{title + ', ' + figure['unit']:40}{'median':>11} {'min':>11} "
          f"{'max':>11} {'cpu' if cpu else '':>11}{heads}")
    for name, of in figure["contestants"].items():
        ratios = "".join(
            f"{ratio_text(figure['ratios'][base].get(name)):>22}"
            for base in bases)
        spent = f"{cpu['contestants'][name]['median']:.2f}" if cpu else ""
        print(f"    {name:36}{of['median']:11.2f} {of['min']:11.2f} "
              f"{of['max']:11.2f} {spent:>11}{ratios}")


def judge(figure, workers):
    """The targets of a figure, each with the least ratio of its peers."""
    judged = []
    for target in TARGETS:
        if (target.value, target.workers) != (figure["value"], workers):
            continue
        ratios = figure["ratios"].get(target.base, {})
        found = [ratios[peer][target.by] for peer in target.peers
                 if peer in ratios]
        if found:
            judged.append({"base": target.base, "peers": target.peers,
                           "target": target.least, "by": target.by,
                           "ratio": min(found),
                           "met": min(found) >= target.least})
    return judged


def print_targets(figure):
    for of in figure["targets"]:
        by = "" if of["by"] == "ratio" else " by the upper quartile"
        print(f"    {of['base']} to {', '.join(of['peers'])}: wanted "
              f">={of['target']:.2f}{by}, {of['ratio']:.2f} "
              f"{verdict(of['met'])}")


def print_figures(figures, workers):
    for i, figure in enumerate(figures):
        if figure["value"].endswith(".cpu"):
            continue  # stands beside the one before
        following = figures[i + 1] if i + 1 < len(figures) else {"value": ""}
        cpu = following if following["value"].endswith(".cpu") else None
        print_figure(f"{figure['value']}, {workers_text(workers)}", figure, cpu)
        figure["targets"] = judge(figure, workers)
        print_targets(figure)


def print_costs(costs):
    for name, cost in costs.items():
        print(f"    {name:24} a process: "
              f"{cost['peak_rss_bytes'] / 2**20:8.1f} MiB at most, "
              f"{cost['cpu_s']:7.3f} s of processor, "
              f"{cost['context_switches']:7.0f} context switches")


def workers_text(workers):
    return {0: "this thread alone", 1: "1 worker"}.get(
        workers, f"{workers} workers")


def scaling_of(one, two):
    """How much each does with two workers in the time in which one does 1."""
    scaling = {}
    for name in one:
        if name in two:
            low, median, high = quartiles(
                [a[0] / b[0] for (a, _), (b, _) in zip(one[name], two[name])])
            scaling[name] = {"ratio": median, "low": low, "high": high}
    return scaling


def print_scaling(title, scaling):
    words = ", ".join(
        f"{name} {of['ratio']:.2f} ({of['low']:.2f}-{of['high']:.2f})"
        for name, of in scaling.items())
    print(f"{title}, two workers in the time of one: {words}")


def run_row(bench, peers, row):
    entries = {(workers, name): entry for workers in row.workers for name, entry
               in entries_of(bench, peers, row, workers).items()}

    def take(key):
        # A pool of one has threads besides its worker's, as all have.
        cpus = bench.pool_cpus if key[0] else bench.server_cpu
        return run_entry(bench, entries[key], cpus)

    taken = alternate(take, entries, 2 if bench.quick else row.rounds)
    results = []
    parts = []
    for workers in row.workers:
        part = {name: of for (count, name), of in taken.items()
                if count == workers}
        figures, costs = compare([value.title for value in row.values],
                                 [value.unit for value in row.values], part)
        print_figures(figures, workers)
        print_costs(costs)
        parts.append(part)
        results.append({"row": row.name, "workers": workers,
                        "figures": figures, "costs": costs})
    if row.workers == (1, 2) and row.values == times(row.name):
        results[-1]["scaling"] = scaling_of(*parts)
        print_scaling(row.values[0].title, results[-1]["scaling"])
    return results


# Servers.

def process_cpu_ns(pid):
    """By the process clock, to the nanosecond; MAKE_PROCESS_CPUCLOCK in C."""
    return time.clock_gettime_ns((~pid << 3) | 2)


def process_status(pid):
    text = open(f"/proc/{pid}/status").read()
    switches = 0
    for task in os.listdir(f"/proc/{pid}/task"):
        lines = open(f"/proc/{pid}/task/{task}/status").read()
        switches += sum(int(n) for n in re.findall(
            r"^\w+_ctxt_switches:\s*(\d+)", lines, re.M))
    peak = re.search(r"^VmHWM:\s*(\d+)", text, re.M)
    return {"peak_rss_bytes": int(peak.group(1)) * 1024,
            "cpu_s": process_cpu_ns(pid) / 1e9, "context_switches": switches}


def server_kinds(bench, peers, row):
    """{title: kind}; kinds of peers get their command here."""
    kinds = {"Pirn": "async", "Pirn fibers": "fiber",
             "Pirn fibers, pool of 1": "fiber pool", "plain epoll": "plain",
             "plain epoll again": "plain again"}
    if row == "hello":
        kinds = {"Pirn": "hello", "Pirn fibers": "hello fibers",
                 "Pirn fibers, pool of 1": "hello pool"}
        program = bench.program("hello")
        bench.servers["hello"] = [program]
        bench.servers["hello fibers"] = [program, "--fibers"]
        bench.servers["hello pool"] = [program, "--fibers", "--workers", "1"]
    runs = [(peer, TITLES[peer], row, 0) for peer in PEERS]
    runs += [("tokio", "Tokio, 1 worker", row, 1),
             ("asio", "Boost.Asio, 1 worker", row, 1),
             ("go", "Go net/http", "nethttp", 1)]
    for peer, title, of_row, workers in runs:
        if not peers.has(peer) or peer == "context" or \
                (peer == "plain" and row == "echo") or \
                (of_row == "nethttp" and row == "echo"):
            continue
        kind = f"peer {of_row} {title}"
        bench.servers[kind] = peers.command(peer, of_row, workers)
        kinds[title] = kind
    return kinds


ECHO_TITLES = ("cpu_us", "us_per_request", "p50_us", "p99_us")


def take_echo(bench, kind, row):
    requests = 4000 if bench.quick else 40000
    with echo.Server(bench, kind, row) as server:
        sample = json.loads(bench.output(
            echo.load_command(bench, server, row, requests), bench.load_cpu))
        cost = process_status(server.pid)
    return [sample["server_cpu_ns"] / requests / 1000,
            sample["elapsed_ns"] / requests / 1000,
            sample["p50_ns"] / 1000, sample["p99_ns"] / 1000], cost


def print_calls(calls):
    for name, of in calls.items():
        print(f"    {name:24} system calls a request: {of['reads']:.3f} reads, "
              f"{of['writes']:.3f} writes, {of['waits']:.3f} waits, "
              f"{of['other']:.3f} other ({of['source']})")


def run_servers(bench, row, titles, kinds, take, rounds):
    taken = alternate(lambda title: take(kinds[title]), kinds, rounds)
    figures, costs = compare(titles, ["us"] * len(titles), taken)
    for figure in figures:
        print_figure(f"{row}: {figure['value']}", figure)
        figure["targets"] = judge(figure, None)
        print_targets(figure)
    print_costs(costs)
    return {"row": row, "workers": None, "figures": figures, "costs": costs}


def run_echo(bench, peers):
    results = []
    for row in (echo.EchoRow(50, 0), echo.EchoRow(1000, 0)):
        kinds = server_kinds(bench, peers, "echo")
        result = run_servers(
            bench, f"echo, {row.connections} connections", ECHO_TITLES, kinds,
            lambda kind: take_echo(bench, kind, row), 2 if bench.quick else 25)
        calls = {title: echo.count_syscalls(bench, kind, row)
                 for title, kind in kinds.items() if "again" not in title}
        result["calls"] = {title: of for title, of in calls.items() if of}
        print_calls(result["calls"])
        results.append(result)
    return results


HTTP_CONNECTIONS = 50
TIME_UNITS = {"us": 1, "ms": 1000, "s": 1000000}


def wrk_time_us(text, percent):
    found = re.search(rf"^\s*{percent}%\s+([\d.]+)(us|ms|s)$", text, re.M)
    return float(found.group(1)) * TIME_UNITS[found.group(2)]


def take_http(bench, kind):
    seconds = 1 if bench.quick else 2
    with echo.Server(bench, kind, echo.EchoRow(HTTP_CONNECTIONS, 0)) as server:
        before_ns = process_cpu_ns(server.pid)
        text = bench.output(
            ["wrk", "-t1", f"-c{HTTP_CONNECTIONS}", f"-d{seconds}s",
             "--latency", f"http://127.0.0.1:{server.port}/"], bench.load_cpu)
        spent_ns = process_cpu_ns(server.pid) - before_ns
        cost = process_status(server.pid)
    requests = int(re.search(r"(\d+) requests in", text).group(1))
    if requests == 0 or "Non-2xx" in text:
        raise Broken(f"wrk: {text}")
    rate = float(re.search(r"Requests/sec:\s*([\d.]+)", text).group(1))
    return [spent_ns / requests / 1000, 1e6 / rate, wrk_time_us(text, 50),
            wrk_time_us(text, 99)], cost


def run_http(bench, peers):
    if not shutil.which("wrk"):
        print("peers: http is left out: no wrk (scripts/deps bench)")
        return []
    kinds = server_kinds(bench, peers, "hello")
    return [run_servers(bench, f"hello, {HTTP_CONNECTIONS} connections",
                        ECHO_TITLES, kinds, lambda kind: take_http(bench, kind),
                        2 if bench.quick else 11)]


def run_group(bench, peers, group):
    if group == "echo":
        return run_echo(bench, peers)
    if group == "http":
        return run_http(bench, peers)
    results = []
    for row in ROWS:
        if row.group == group:
            results += run_row(bench, peers, row)
    return results


def run_peers(bench, workload):
    """`workload` is peers, or peers:GROUP."""
    group = workload.partition(":")[2]
    if bench.peers is None:
        bench.peers = Peers(bench)
        bench.peers.print()
    peers = bench.peers
    results = []
    for one in [group] if group else GROUPS:
        print(f"\n-- {one} --", flush=True)
        results += run_group(bench, peers, one)
    return {"versions": {TITLES[peer]: version
                         for peer, version in peers.versions.items()},
            "left_out": peers.left_out, "rows": results}
