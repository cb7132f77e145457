# SPDX-License-Identifier: MIT
"""tests/serve/load_test.py - `pirn load` against servers good and bad.

    load_test.py PIRN [--workers N] [-k WORD]...
"""
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import unittest

import server


class BadServer:
    """Accepts, and does the given thing with each connection."""

    def __init__(self, behave):
        self.socket = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.behave = behave
        self.url = "http://127.0.0.1:%d/" % self.socket.getsockname()[1]
        self.open = []
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        while True:
            try:
                client, _ = self.socket.accept()
            except OSError:
                return
            try:
                self.behave(self, client)
            except OSError:
                pass

    def close(self):
        # Closing alone would not wake the thread from accept().
        self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()
        self.thread.join(server.PATIENCE_S)
        for client in self.open:
            client.close()


def run_load(url, *options, seconds="1", status=None, connections="4"):
    """Run to the end; exit status, and the results."""
    result = subprocess.run(
        [server.pirn, "load", url, "-c", connections, "-d", seconds, "--json",
         "--workers", server.workers, *options],
        text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        timeout=server.PATIENCE_S, check=False)
    if status is not None and result.returncode != status:
        raise AssertionError((result.returncode, result.stdout, result.stderr))
    return json.loads(result.stdout)


class GoodServerTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="pirn-load-")
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        with open(os.path.join(cls.folder, "file"), "wb") as file:
            file.write(bytes(1000))
        cls.server = server.Server(cls.folder)
        cls.addClassCleanup(cls.server.kill)

    @classmethod
    def tearDownClass(cls):
        status, _, err = cls.server.stop()
        assert status == 0, err

    def test_keep_alive(self):
        result = run_load(self.server.url + "/file", status=0)
        self.assertGreater(result["requests"], 0)
        self.assertEqual(sum(result["errors"].values()), 0)
        latency = result["latency_us"]
        self.assertLessEqual(latency["p50"], latency["p90"])
        self.assertLessEqual(latency["p90"], latency["p99"])
        self.assertLessEqual(latency["p99"], latency["max"])
        # Every answer is its body and a head of some hundred bytes.
        size = result["mb_per_s"] * 1e6 / result["requests_per_s"]
        self.assertGreater(size, 1000)
        self.assertLess(size, 1500)

    def test_new_connections(self):
        result = run_load(self.server.url + "/file", "-k", "off", status=0)
        self.assertGreater(result["requests"], 0)

    def test_bad_status(self):
        result = run_load(self.server.url + "/nothing", status=1)
        self.assertEqual(result["errors"]["status"], result["requests"])
        self.assertGreater(result["requests"], 0)

    def test_table(self):
        result = subprocess.run(
            [server.pirn, "load", self.server.url + "/file", "-c", "2",
             "-d", "1", "--progress", "on"],
            text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            timeout=server.PATIENCE_S, check=False)
        self.assertEqual(result.returncode, 0, result.stderr)
        for word in ("requests", "throughput", "p50", "p90", "p99", "max",
                     "errors"):
            self.assertIn(word, result.stdout)
        self.assertIn("requests/s", result.stderr)
        self.assertEqual(server.worker_lines(result.stdout), [])

    def test_verbose_shows_every_worker(self):
        url = self.server.url + "/file"
        result = subprocess.run(
            [server.pirn, "load", url, "-d", "1", "--workers", "2",
             "--verbose"],
            text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            timeout=server.PATIENCE_S, check=False)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(len(server.worker_lines(result.stdout)), 2)
        result = run_load(url, "--workers", "3", "--verbose", status=0)
        self.assertEqual(len(result["workers"]), 3)
        self.assertGreater(sum(w["polls"] for w in result["workers"]), 0)
        self.assertNotIn("workers", run_load(url, status=0))

    def test_many_clients_on_many_workers(self):
        """Goal: nothing is counted twice or lost by clients on all workers.
        Method: more clients than shards; the bytes are those of the answers,
        which all have the same length."""
        size = len(self.whole_answer())
        result = run_load(self.server.url + "/file", connections="150",
                          status=0)
        received = result["mb_per_s"] * 1e6 * result["seconds"]
        self.assertAlmostEqual(received / size, result["requests"],
                               delta=result["requests"] * 0.002 + 150)

    def whole_answer(self):
        with self.server.connect() as client:
            client.send("GET /file HTTP/1.1\r\nHost: x\r\n"
                        "Connection: close\r\n\r\n")
            answer = b""
            while piece := client.receive():
                answer += piece
        # What load asks for keeps the connection and so has no such header.
        return answer.replace(b"Connection: close\r\n", b"")

    def test_signal_ends_it_early(self):
        process = subprocess.Popen(
            [server.pirn, "load", self.server.url + "/file", "-c", "2",
             "-d", "1000", "--progress", "on"],
            text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            preexec_fn=server.die_with_parent)
        self.addCleanup(process.kill)
        process.stderr.readline()
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=server.PATIENCE_S)
        self.assertEqual(process.returncode, 0)
        self.assertIn("throughput", out)


class BadServerTest(unittest.TestCase):
    def start(self, behave):
        bad = BadServer(behave)
        self.addCleanup(bad.close)
        return bad.url

    def check_only(self, result, kind):
        self.assertGreater(result["errors"][kind], 0, result)
        for name, count in result["errors"].items():
            if name != kind:
                self.assertEqual(count, 0, result)

    def test_nobody_listens(self):
        with socket.create_server(("127.0.0.1", 0)) as free:
            url = "http://127.0.0.1:%d/" % free.getsockname()[1]
        self.check_only(run_load(url, status=1), "connect")

    def test_connections_break(self):
        def behave(_, client):
            client.recv(4096)
            client.close()

        self.check_only(run_load(self.start(behave), status=1), "reset")

    def test_answer_is_cut(self):
        def behave(_, client):
            client.recv(4096)
            client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc")
            client.close()

        self.check_only(run_load(self.start(behave), status=1), "reset")

    def test_no_answer(self):
        def behave(bad, client):
            bad.open.append(client)

        result = run_load(self.start(behave), "-t", "100", status=1)
        self.check_only(result, "timeout")
        self.assertEqual(result["requests"], 0)

    def test_unfinished_is_no_error(self):
        def behave(bad, client):
            bad.open.append(client)

        result = run_load(self.start(behave), status=1)
        self.assertEqual(sum(result["errors"].values()), 0)
        self.assertEqual(result["unfinished"], 4)

    def test_no_http(self):
        def behave(bad, client):
            client.recv(4096)
            client.sendall(b"220 ready\r\n")
            bad.open.append(client)

        self.check_only(run_load(self.start(behave), status=1), "parse")

    def test_answer_until_the_end(self):
        def behave(_, client):
            client.recv(4096)
            client.sendall(b"HTTP/1.1 200 OK\r\n\r\nuntil the end")
            client.close()

        result = run_load(self.start(behave), status=0)
        self.assertGreater(result["requests"], 0)


class CommandTest(unittest.TestCase):
    def test_wrong_arguments_are_named(self):
        url = "http://127.0.0.1:1/"
        for word, arguments in (
                ("--connections", (url, "-c", "0")),
                ("--connections", (url, "--connections", "many")),
                ("--duration", (url, "-d", "0")),
                ("--keep-alive", (url, "-k", "maybe")),
                ("--timeout-ms", (url, "-t", "0")),
                ("--progress", (url, "--progress", "1")),
                ("--workers", (url, "--workers", "0")),
                ("--workers", (url, "--workers", "x")),
                ("--nonsense", (url, "--nonsense")),
                ("one URL", ()),
                ("one URL", (url, url)),
                ("https://127.0.0.1/", ("https://127.0.0.1/",)),
                ("example.org", ("http://example.org/",))):
            result = subprocess.run([server.pirn, "load", *arguments],
                                    text=True, stdout=subprocess.PIPE,
                                    stderr=subprocess.PIPE,
                                    timeout=server.PATIENCE_S, check=False)
            self.assertEqual(result.returncode, 2, arguments)
            self.assertIn(word, result.stderr)
            self.assertEqual(result.stdout, "")


if __name__ == "__main__":
    server.main("__main__")
