# SPDX-License-Identifier: MIT
"""tests/serve/serve_test.py - `pirn serve` over raw sockets.

    serve_test.py PIRN [--workers N] [-k WORD]...
"""
import email.utils
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time
import unittest
from random import Random

import server

HOST = "Host: test\r\n"
SMALL = b"Hello, file.\n"
BIG_SIZE = 10 * 1000 * 1000


def big_content():
    """Ten megabytes in which every piece differs from every other."""
    return b"".join(struct.pack("<Q", i) for i in range(BIG_SIZE // 8))


def make_site(folder):
    """A folder to serve, and beside it something that must not be served."""
    root = os.path.join(folder, "root")
    os.makedirs(os.path.join(root, "docs", "empty"))
    files = {
        "small.txt": SMALL,
        "empty": b"",
        "page.HTML": b"<p>",
        "data.json": b"{}",
        "a b%.txt": b"odd name",
        "limit": bytes(65536),
        "beyond": bytes(range(256)) * 256 + b"!",
        "docs/index.html": b"<h1>Docs</h1>",
        "docs/x.css": b"p {}",
    }
    for name, content in files.items():
        with open(os.path.join(root, name), "wb") as file:
            file.write(content)
    with open(os.path.join(folder, "secret"), "wb") as file:
        file.write(b"secret")
    os.symlink("small.txt", os.path.join(root, "link"))
    os.symlink("../secret", os.path.join(root, "out"))
    os.symlink("/etc/passwd", os.path.join(root, "out-absolute"))
    os.symlink("..", os.path.join(root, "out-folder"))
    os.symlink("loop", os.path.join(root, "loop"))
    os.symlink("/proc/self/root", os.path.join(root, "magic"))
    os.mkfifo(os.path.join(root, "pipe"))
    return root


class SiteTest(unittest.TestCase):
    """Base: a site; subclasses share one server or start their own."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="pirn-site-")
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.root = make_site(cls.folder)

    def start(self, *options, **limits):
        running = server.Server(self.root, *options, **limits)
        self.addCleanup(running.kill)
        return running

    def make_big(self):
        content = big_content()
        path = os.path.join(self.root, "big")
        if not os.path.exists(path):
            with open(path, "wb") as file:
                file.write(content)
        return content


class SharedServerTest(SiteTest):
    """Everything that needs no options: one server, which must survive all of
    it and stop in order afterwards."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.server = server.Server(cls.root)
        cls.addClassCleanup(cls.server.kill)

    @classmethod
    def tearDownClass(cls):
        status, out, err = cls.server.stop()
        assert status == 0, (status, out, err)
        assert err == "", err

    def connect(self):
        client = self.server.connect()
        self.addCleanup(client.socket.close)
        return client

    def get(self, target, **headers):
        return self.connect().request(target, **headers)


class MessageTest(SharedServerTest):
    def test_small_file(self):
        response = self.get("/small.txt")
        self.assertEqual(response.status, 200)
        self.assertEqual(response.body, SMALL)
        self.assertEqual(response["content-type"], "text/plain; charset=utf-8")
        self.assertEqual(response["accept-ranges"], "bytes")
        self.assertIsNone(response["connection"])
        self.assertIsNotNone(email.utils.parsedate(response["date"]))
        modified = email.utils.parsedate_to_datetime(response["last-modified"])
        path = os.path.join(self.root, "small.txt")
        self.assertEqual(int(modified.timestamp()),
                         int(os.stat(path).st_mtime))

    def test_sizes_around_the_limit_of_small_files(self):
        for name in ("empty", "limit", "beyond"):
            with open(os.path.join(self.root, name), "rb") as file:
                content = file.read()
            response = self.get("/" + name)
            self.assertEqual(response.status, 200)
            self.assertEqual(response.body, content)

    def test_large_file(self):
        content = self.make_big()
        self.assertEqual(self.get("/big").body, content)

    def test_content_types(self):
        self.assertEqual(self.get("/page.HTML")["content-type"],
                         "text/html; charset=utf-8")
        self.assertEqual(self.get("/data.json")["content-type"],
                         "application/json")
        self.assertEqual(self.get("/empty")["content-type"],
                         "application/octet-stream")

    def test_head_has_no_body(self):
        client = self.connect()
        for target in ("/small.txt", "/beyond", "/nothing", "/docs/"):
            head = client.request(target, method="HEAD")
            get = client.request(target)
            self.assertEqual(head.status, get.status)
            self.assertEqual(head["content-length"], str(len(get.body)))
            self.assertEqual(head["content-type"], get["content-type"])

    def test_folder(self):
        response = self.get("/docs/")
        self.assertEqual(response.status, 200)
        self.assertEqual(response.body, b"<h1>Docs</h1>")
        self.assertEqual(response["content-type"], "text/html; charset=utf-8")
        for target, location in (("/docs", "/docs/"),
                                 ("/docs?a=b", "/docs/?a=b"),
                                 ("//docs", "/docs/"),
                                 ("/x/../docs", "/docs/"),
                                 ("/%64ocs", "/docs/")):
            response = self.get(target)
            self.assertEqual(response.status, 301)
            self.assertEqual(response["location"], location)
        # Without an index there is nothing to see.
        self.assertEqual(self.get("/docs/empty/").status, 404)
        self.assertEqual(self.get("/").status, 404)

    def test_file_is_no_folder(self):
        self.assertEqual(self.get("/small.txt/").status, 404)
        self.assertEqual(self.get("/small.txt/x").status, 404)

    def test_not_found(self):
        for target in ("/nothing", "/docs/nothing", "/" + "x" * 300,
                       "/small.txt%20", "/pipe", "/loop"):
            response = self.get(target)
            self.assertEqual(response.status, 404, target)
            self.assertEqual(response.body, b"404 Not Found\n")

    def test_query_and_absolute_form(self):
        self.assertEqual(self.get("/small.txt?x=%zz&y").body, SMALL)
        self.assertEqual(self.get("http://test/small.txt").body, SMALL)
        self.assertEqual(self.get("http://test").status, 404)

    def test_percent_decoding(self):
        self.assertEqual(self.get("/a%20b%25.txt").body, b"odd name")
        self.assertEqual(self.get("/%73mall.txt").body, SMALL)

    def test_if_modified_since(self):
        modified = self.get("/small.txt")["last-modified"]
        client = self.connect()
        response = client.request("/small.txt", if_modified_since=modified)
        self.assertEqual(response.status, 304)
        self.assertEqual(response["last-modified"], modified)
        # The connection goes on at the right byte.
        later = email.utils.formatdate(2 ** 31, usegmt=True)
        for date, status in ((later, 304),
                             ("Sunday, 06-Nov-94 08:49:37 GMT", 200),
                             ("Sun Nov  6 08:49:37 1994", 200),
                             ("yesterday", 200), ("", 200)):
            response = client.request("/small.txt", if_modified_since=date)
            self.assertEqual(response.status, status, date)
        response = client.request("/small.txt", method="HEAD",
                                  if_modified_since=modified)
        self.assertEqual(response.status, 304)


class RangeTest(SharedServerTest):
    def check_part(self, name, content, text, start, end):
        response = self.get("/" + name, range=text)
        self.assertEqual(response.status, 206, text)
        self.assertEqual(response.body, content[start:end], text)
        self.assertEqual(response["content-range"],
                         f"bytes {start}-{end - 1}/{len(content)}")

    def test_parts(self):
        size = len(SMALL)
        for text, start, end in (("bytes=0-0", 0, 1),
                                 ("bytes=2-4", 2, 5),
                                 ("bytes=5-", 5, size),
                                 ("bytes=0-999", 0, size),
                                 ("bytes=-3", size - 3, size),
                                 ("bytes=-999", 0, size),
                                 (f"bytes={size - 1}-", size - 1, size)):
            self.check_part("small.txt", SMALL, text, start, end)

    def test_parts_of_a_large_file(self):
        content = self.make_big()
        size = len(content)
        for text, start, end in (("bytes=1000001-1000010", 1000001, 1000011),
                                 ("bytes=1-", 1, size),
                                 ("bytes=-70000", size - 70000, size)):
            self.check_part("big", content, text, start, end)

    def test_unsatisfiable(self):
        for name, text in (("small.txt", "bytes=13-"),
                           ("small.txt", "bytes=99-100"),
                           ("small.txt", "bytes=-0"),
                           ("empty", "bytes=0-")):
            response = self.get("/" + name, range=text)
            self.assertEqual(response.status, 416, text)
            size = os.path.getsize(os.path.join(self.root, name))
            self.assertEqual(response["content-range"], f"bytes */{size}")

    def test_whole_file_instead(self):
        for text in ("bytes=0-1,4-5", "bytes=x-y", "lines=1-2", "bytes=5-2",
                     "bytes=" + "1" * 200 + "-"):
            response = self.get("/small.txt", range=text)
            self.assertEqual(response.status, 200, text)
            self.assertEqual(response.body, SMALL)
            self.assertIsNone(response["content-range"])

    def test_if_range(self):
        modified = self.get("/small.txt")["last-modified"]
        old = "Sun, 06 Nov 1994 08:49:37 GMT"
        for condition, status in ((modified, 206), (old, 200),
                                  ('"tag"', 200)):
            response = self.get("/small.txt", range="bytes=0-1",
                                if_range=condition)
            self.assertEqual(response.status, status, condition)

    def test_head_ignores_ranges(self):
        response = self.connect().request("/small.txt", method="HEAD",
                                          range="bytes=0-1")
        self.assertEqual(response.status, 200)
        self.assertEqual(response["content-length"], str(len(SMALL)))


class ConnectionTest(SharedServerTest):
    def test_keep_alive(self):
        client = self.connect()
        for _ in range(20):
            self.assertEqual(client.request("/small.txt").body, SMALL)
        self.assertEqual(client.request("/nothing").status, 404)
        self.assertEqual(client.request("/small.txt").body, SMALL)

    def test_connection_close(self):
        client = self.connect()
        response = client.request("/small.txt", connection="close")
        self.assertEqual(response["connection"], "close")
        self.assertTrue(client.is_closed())

    def test_http_1_0(self):
        client = self.connect()
        response = client.request("/small.txt", version="1.0", host=None)
        self.assertEqual(response.body, SMALL)
        self.assertEqual(response["connection"], "close")
        self.assertTrue(client.is_closed())

        client = self.connect()
        for _ in range(2):
            response = client.request("/small.txt", version="1.0",
                                      connection="keep-alive")
            self.assertEqual(response["connection"], "keep-alive")

    def test_pipeline_is_answered_in_order(self):
        client = self.connect()
        names = ["small.txt", "nothing", "beyond", "data.json", "docs"] * 10
        client.send("".join(f"GET /{name} HTTP/1.1\r\n{HOST}\r\n"
                            for name in names))
        expected = {"small.txt": 200, "nothing": 404, "beyond": 200,
                    "data.json": 200, "docs": 301}
        for name in names:
            response = client.read_response()
            self.assertEqual(response.status, expected[name])
            if response.status == 200:
                size = os.path.getsize(os.path.join(self.root, name))
                self.assertEqual(len(response.body), size)
        self.assertTrue(client.is_silent())

    def test_pipeline_stops_at_close(self):
        client = self.connect()
        client.send(f"GET /small.txt HTTP/1.1\r\n{HOST}"
                    "Connection: close\r\n\r\n"
                    f"GET /data.json HTTP/1.1\r\n{HOST}\r\n")
        self.assertEqual(client.read_response().body, SMALL)
        self.assertTrue(client.is_closed())

    def test_request_in_single_bytes(self):
        client = self.connect()
        for byte in f"GET /small.txt HTTP/1.1\r\n{HOST}\r\n":
            client.send(byte)
        self.assertEqual(client.read_response().body, SMALL)

    def test_half_close_still_gets_the_answers(self):
        content = self.make_big()
        client = self.connect()
        client.send(f"GET /small.txt HTTP/1.1\r\n{HOST}\r\n"
                    f"GET /big HTTP/1.1\r\n{HOST}\r\n")
        client.socket.shutdown(socket.SHUT_WR)
        self.assertEqual(client.read_response().body, SMALL)
        self.assertEqual(client.read_response().body, content)
        self.assertTrue(client.is_closed())

    def test_reset_costs_only_its_connection(self):
        self.make_big()
        other = self.connect()
        self.assertEqual(other.request("/small.txt").body, SMALL)
        for size in (0, 1, 100000):
            client = self.connect()
            client.send(f"GET /big HTTP/1.1\r\n{HOST}\r\n")
            if size > 0:
                client.read_exactly(size)
            linger = struct.pack("ii", 1, 0)
            client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                                     linger)
            client.socket.close()
        self.assertEqual(other.request("/small.txt").body, SMALL)

    def test_half_a_request_and_gone(self):
        for text in ("", "G", "GET /small.txt HTTP/1.1\r\nHo"):
            client = self.connect()
            client.send(text)
            client.socket.close()
        self.assertEqual(self.get("/small.txt").body, SMALL)

    def test_curl_agrees(self):
        curl = shutil.which("curl")
        if curl is None:
            self.skipTest("no curl")
        self.make_big()
        for name in ("small.txt", "empty", "limit", "beyond", "big", "link"):
            with open(os.path.join(self.root, name), "rb") as file:
                content = file.read()
            result = subprocess.run(
                [curl, "-sS", "-f", f"{self.server.url}/{name}"],
                stdout=subprocess.PIPE, check=True,
                timeout=server.PATIENCE_S)
            self.assertEqual(result.stdout, content, name)

    def test_wrk_agrees(self):
        wrk = shutil.which("wrk")
        if wrk is None:
            self.skipTest("no wrk")
        result = subprocess.run(
            [wrk, "-t", "1", "-c", "20", "-d", "1s",
             f"{self.server.url}/small.txt"], text=True,
            stdout=subprocess.PIPE, check=True, timeout=server.PATIENCE_S)
        out = result.stdout
        self.assertNotIn("Socket errors", out)
        self.assertNotIn("Non-2xx", out)
        self.assertGreater(int(re.search(r"(\d+) requests in", out)[1]), 0, out)


class NonsenseTest(SharedServerTest):
    def check_refused(self, data, status):
        """It gets that answer, and the connection ends."""
        client = self.connect()
        client.send(data)
        response = client.read_response()
        self.assertEqual(response.status, status, data[:60])
        self.assertEqual(response["connection"], "close")
        self.assertTrue(client.is_closed())

    def test_what_is_no_request(self):
        for data in ("hello\r\n\r\n", "\x16\x03\x01\x00\xa5\x01",
                     "GET\r\n\r\n", f"GET  HTTP/1.1\r\n{HOST}\r\n",
                     "GET /\0 HTTP/1.1\r\n\r\n",
                     f"GET /a\0b HTTP/1.1\r\n{HOST}\r\n",
                     f"GET / HTTP/1.1\r\n{HOST}X: a\0b\r\n\r\n",
                     f"GET / HTTP/1.1\r\n{HOST}Bad Name: x\r\n\r\n",
                     "GET / HTTP/1.1\r\n\r\n",
                     f"GET / HTTP/1.1\r\n{HOST}{HOST}\r\n",
                     f"GET / HTTP/1.1\r\n{HOST}Content-Length: 1\r\n"
                     "Transfer-Encoding: chunked\r\n\r\n"):
            self.check_refused(data, 400)
        self.check_refused(f"GET / HTTP/2.0\r\n{HOST}\r\n", 505)

    def test_broken_escapes(self):
        for target in ("/%", "/%4", "/%zz", "/a%00b", "/%%41", "*"):
            response = self.get(target)
            self.assertEqual(response.status, 400, target)

    def test_other_methods(self):
        client = self.connect()
        for method in ("POST", "PUT", "DELETE", "OPTIONS", "TRACE", "PATCH"):
            response = client.request("/small.txt", method=method)
            self.assertEqual(response.status, 405, method)
            self.assertEqual(response["allow"], "GET, HEAD")
        response = client.request("test:80", method="CONNECT")
        self.assertEqual(response.status, 405)
        self.assertEqual(client.request("/small.txt").body, SMALL)

    def test_bodies_are_passed_over(self):
        client = self.connect()
        client.send(f"GET /small.txt HTTP/1.1\r\n{HOST}"
                    "Content-Length: 5\r\n\r\nhello"
                    f"POST /small.txt HTTP/1.1\r\n{HOST}"
                    "Transfer-Encoding: chunked\r\n\r\n"
                    "5\r\nhello\r\n0\r\nRange: bytes=0-0\r\n\r\n")
        self.assertEqual(client.read_response().body, SMALL)
        self.assertEqual(client.read_response().status, 405)
        self.assertEqual(client.request("/small.txt").body, SMALL)

    def test_large_bodies_are_refused(self):
        self.check_refused(f"POST / HTTP/1.1\r\n{HOST}"
                           "Content-Length: 1000000000\r\n\r\n", 413)
        self.check_refused(f"POST / HTTP/1.1\r\n{HOST}"
                           "Transfer-Encoding: chunked\r\n\r\n"
                           "fffff\r\n" + "x" * 100000, 413)

    def test_expect(self):
        response = self.get("/small.txt", expect="100-continue")
        self.assertEqual(response.status, 200)
        self.check_refused(f"POST / HTTP/1.1\r\n{HOST}Content-Length: 5\r\n"
                           "Expect: 100-continue\r\n\r\n", 405)

    def test_large_headers_are_refused(self):
        self.check_refused(f"GET / HTTP/1.1\r\n{HOST}X: " + "x" * 20000
                           + "\r\n\r\n", 431)
        self.check_refused(f"GET / HTTP/1.1\r\n{HOST}" + "A: b\r\n" * 5000
                           + "\r\n", 431)
        self.check_refused("GET /" + "x" * 5000 + f" HTTP/1.1\r\n{HOST}\r\n",
                           414)
        # One that just fits.
        response = self.get("/small.txt", x="x" * 16000)
        self.assertEqual(response.status, 200)

    def test_nothing_leads_out_of_the_root(self):
        for target in ("/../secret", "/%2e%2e/secret", "/%2e%2e%2fsecret",
                       "/..%2fsecret", "/docs/../../secret",
                       "/docs/..%2f..%2fsecret", "//../secret",
                       "/out", "/out-absolute", "/out-folder/secret",
                       "/out-folder/root/small.txt", "/magic/etc/passwd",
                       "/..%5csecret", "/etc/passwd", "//etc/passwd",
                       "/%2fetc%2fpasswd", "/proc/self/environ"):
            response = self.get(target)
            self.assertEqual(response.status, 404, target)
            self.assertNotIn(b"secret", response.body)
            self.assertNotIn(b"root:", response.body)
        # A link that stays inside is as good as its target.
        self.assertEqual(self.get("/link").body, SMALL)

    def test_mangled_requests_cost_only_their_connection(self):
        seed = int(os.environ.get("PIRN_SEED", time.time_ns()))
        print(f"seed {seed} (repeat with PIRN_SEED={seed})", flush=True)
        random = Random(seed)
        plain = (f"GET /small.txt?a=b HTTP/1.1\r\n{HOST}Range: bytes=1-2\r\n"
                 "Content-Length: 3\r\nConnection: keep-alive\r\n\r\nabc")
        for _ in range(300):
            data = bytearray(plain.encode() * random.randrange(1, 4))
            for _ in range(random.randrange(1, 6)):
                at = random.randrange(len(data))
                data[at:at + random.randrange(3)] = random.randbytes(
                    random.randrange(3))
            with self.connect() as client:
                client.send(bytes(data))
                client.socket.shutdown(socket.SHUT_WR)
                # Whatever the answer: it ends, and is HTTP as far as it goes.
                answer = b""
                while piece := client.receive():
                    answer += piece
                is_http = answer.startswith(b"HTTP/1.1 ")
                self.assertTrue(is_http or answer == b"", (data, answer[:60]))
        self.assertEqual(self.get("/small.txt").body, SMALL)

    def test_redirect_stays_on_this_host(self):
        for target in ("//evil.example/..//docs", "/\\evil.example/../docs"):
            location = self.get(target)["location"]
            self.assertEqual(location, "/docs/")


class DeadlineTest(SiteTest):
    def test_slow_header_gets_408(self):
        running = self.start("--header-ms", "100")
        with running.connect() as client:
            client.send("GET /small.txt HTTP/1.1\r\nHo")
            response = client.read_response()
            self.assertEqual(response.status, 408)
            self.assertTrue(client.is_closed())
        self.assertEqual(running.stop()[0], 0)

    def test_trickle_does_not_extend_the_header_deadline(self):
        running = self.start("--header-ms", "200")
        with running.connect() as client:
            client.send("GET /small.txt HTTP/1.1\r\n")
            client.socket.settimeout(0.02)
            answer = b""
            for i in range(1000):
                try:
                    client.send(f"X-{i}: y\r\n")
                    answer = client.receive()
                    break
                except TimeoutError:
                    continue
            self.assertTrue(answer.startswith(b"HTTP/1.1 408 "), answer)

    def test_idle_connection_is_closed(self):
        running = self.start("--idle-ms", "100")
        with running.connect() as client:
            self.assertEqual(client.request("/small.txt").body, SMALL)
            self.assertTrue(client.is_closed())
        with running.connect() as client:
            self.assertTrue(client.is_closed())

    def test_slow_reader_is_served(self):
        content = self.make_big()
        running = self.start("--idle-ms", "1500")
        with running.connect(receive_buffer=65536) as client:
            client.send(f"GET /big HTTP/1.1\r\n{HOST}\r\n")
            self.assertEqual(client.read_head()[0], 200)
            received = client.pending
            # Far longer than the idle time in all, but never silent.  The
            # system lets the server write again when a third of its buffer,
            # up to 4 MiB, is free: here twice a second.
            while len(received) < len(content):
                piece = client.receive(40000)
                self.assertNotEqual(piece, b"")
                received += piece
                time.sleep(0.015)
        self.assertEqual(received, content)
        self.assertEqual(running.stop()[0], 0)

    def test_stalled_reader_is_given_up(self):
        self.make_big()
        running = self.start("--idle-ms", "200")
        with running.connect(receive_buffer=4096) as client:
            client.send(f"GET /big HTTP/1.1\r\n{HOST}\r\n")
            with running.connect() as other:
                # The other one is served meanwhile.
                self.assertEqual(other.request("/small.txt").body, SMALL)
            # Nobody reads here: the server must end it to be able to stop.
            status, out, _ = running.stop()
        self.assertEqual(status, 0, out)


class LimitTest(SiteTest):
    def test_too_many_connections_get_503(self):
        running = self.start("--max-connections", "3")
        clients = [running.connect() for _ in range(3)]
        for client in clients:
            self.assertEqual(client.request("/small.txt").body, SMALL)
        with running.connect() as client:
            client.send(f"GET /small.txt HTTP/1.1\r\n{HOST}\r\n")
            response = client.read_response()
            self.assertEqual(response.status, 503)
            self.assertEqual(response["connection"], "close")
            self.assertTrue(client.is_closed())
        # One leaves, and there is room again.
        clients.pop().socket.close()
        for _ in range(200):
            with running.connect() as client:
                response = client.request("/small.txt")
            if response.status == 200:
                break
        self.assertEqual(response.status, 200)
        for client in clients:
            self.assertEqual(client.request("/small.txt").body, SMALL)
            client.socket.close()
        self.assertEqual(running.stop()[0], 0)

    def test_out_of_descriptors_recovers(self):
        # Each worker has one of its own.
        running = self.start(descriptors=64 + server.worker_count())
        clients = [running.connect() for _ in range(100)]
        # Some are accepted; without a descriptor left for the file they hear
        # so.  The others wait.
        self.assertIn(clients[0].request("/small.txt").status, (200, 503))
        waiting = clients[50:]
        for client in waiting:
            client.send(f"GET /small.txt HTTP/1.1\r\n{HOST}\r\n")
        for client in clients[:50]:
            client.socket.close()
        for client in waiting:
            response = client.read_response()
            self.assertIn(response.status, (200, 503))
            while response.status == 503:
                response = client.request("/small.txt")
            self.assertEqual(response.body, SMALL)
            client.socket.close()
        self.assertEqual(running.stop()[0], 0)

    def test_header_limit_is_an_option(self):
        running = self.start("--max-header", "512")
        with running.connect() as client:
            self.assertEqual(client.request("/small.txt", x="x" * 300).status,
                             200)
            self.assertEqual(client.request("/small.txt", x="x" * 600).status,
                             431)


class StopTest(SiteTest):
    def start_download(self, running):
        """A download of the big file that is certainly in flight."""
        client = running.connect(receive_buffer=4096)
        client.send(f"GET /big HTTP/1.1\r\n{HOST}\r\n")
        self.assertEqual(client.read_head()[0], 200)
        return client

    def wait_until_refused(self, running):
        """Until the first signal has been noticed."""
        deadline = time.monotonic() + server.PATIENCE_S
        while True:
            self.assertLess(time.monotonic(), deadline, "it still accepts")
            try:
                running.connect().socket.close()
            except ConnectionRefusedError:
                return
            except ConnectionResetError:
                continue  # in the queue of the listener that was closed

    def test_stop_without_connections(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            running = self.start()
            running.signal(number)
            status, out, err = running.wait()
            self.assertEqual(status, 0, (out, err))
            self.assertEqual(err, "")
            self.assertIn("Serving ", out)
            self.assertGreater(len(out.splitlines()), 1, "no report")

    def test_report_shows_every_worker(self):
        for count in (1, 3):
            running = self.start("--workers", str(count))
            with running.connect() as client:
                for _ in range(10):
                    client.request("/small.txt")
            status, out, err = running.stop()
            self.assertEqual(status, 0, err)
            polls = server.worker_lines(out)
            self.assertEqual(len(polls), count, out)
            # Each task was polled at least once.
            spawned = int(re.search(r"tasks: (\d+) spawned", out)[1])
            self.assertGreaterEqual(sum(polls), spawned, out)

    def test_environment_counts_for_auto(self):
        previous = os.environ.get("PIRN_WORKERS")
        os.environ["PIRN_WORKERS"] = "3"
        try:
            for word, count in (("auto", 3), ("2", 2)):
                _, out, _ = self.start("--workers", word).stop()
                self.assertEqual(len(server.worker_lines(out)), count, out)
            os.environ["PIRN_WORKERS"] = "0"
            result = subprocess.run(
                [server.pirn, "serve", self.root], text=True,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                timeout=server.PATIENCE_S, check=False)
            self.assertEqual(result.returncode, 2)
            self.assertIn("PIRN_WORKERS", result.stderr)
            self.assertEqual(result.stdout, "")
        finally:
            if previous is None:
                del os.environ["PIRN_WORKERS"]
            else:
                os.environ["PIRN_WORKERS"] = previous

    def test_quiet_prints_nothing(self):
        running = self.start("--quiet")
        with running.connect() as client:
            client.request("/small.txt")
        status, out, err = running.stop()
        self.assertEqual((status, out, err), (0, "", ""))

    def test_idle_connections_are_closed_at_once(self):
        running = self.start("--grace-ms", "60000")
        clients = [running.connect() for _ in range(20)]
        for client in clients[:10]:
            client.request("/small.txt")
        running.signal()
        for client in clients:
            self.assertTrue(client.is_closed())
        self.assertEqual(running.wait()[0], 0)

    def test_download_in_flight_completes(self):
        content = self.make_big()
        running = self.start("--grace-ms", "60000")
        client = self.start_download(running)
        running.signal()
        self.wait_until_refused(running)
        self.assertEqual(client.read_exactly(len(content)), content)
        self.assertTrue(client.is_closed())
        status, out, err = running.wait()
        self.assertEqual(status, 0, (out, err))
        self.assertEqual(err, "")

    def test_begun_request_is_answered(self):
        running = self.start("--grace-ms", "60000")
        client = running.connect()
        # Answered once, so that its fiber certainly runs.
        client.request("/small.txt")
        client.send("GET /small.txt HTTP/1.1\r\n")
        running.signal()
        self.wait_until_refused(running)
        try:
            client.send(f"{HOST}\r\n")
            response = client.read_response()
        except (EOFError, ConnectionResetError, BrokenPipeError):
            # The signal may have been seen before those bytes: then it was
            # idle.
            response = None
        if response is not None:
            self.assertEqual(response.body, SMALL)
            self.assertEqual(response["connection"], "close")
        client.socket.close()
        self.assertEqual(running.wait()[0], 0)

    def test_grace_ends(self):
        self.make_big()
        running = self.start("--grace-ms", "100")
        self.start_download(running)
        status, _, err = running.stop()
        self.assertEqual(status, 1)
        self.assertIn("1 connections cut off", err)

    def test_second_signal_forces(self):
        self.make_big()
        running = self.start("--grace-ms", "600000")
        self.start_download(running)
        running.signal()
        self.wait_until_refused(running)
        running.signal(signal.SIGINT)
        status, _, err = running.wait()
        self.assertEqual(status, 130)
        # Those of the wait above may still be on their way out.
        self.assertRegex(err, r"pirn serve: [1-9]\d* connections cut off\n")


class CommandTest(SiteTest):
    def run_command(self, *arguments):
        return subprocess.run([server.pirn, *arguments], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              timeout=server.PATIENCE_S, check=False)

    def test_wrong_arguments_are_named(self):
        for word, arguments in (
                ("--listen", ("--listen", "here:80")),
                ("--listen", ("--listen", "127.0.0.1:99999")),
                ("--listen", ("--listen",)),
                ("--idle-ms", ("--idle-ms", "soon")),
                ("--idle-ms", ("--idle-ms", "0")),
                ("--header-ms", ("--header-ms", "-1")),
                ("--max-header", ("--max-header", "1")),
                ("--max-connections", ("--max-connections", "0")),
                ("--grace-ms", ("--grace-ms", "1x")),
                ("--workers", ("--workers", "0")),
                ("--workers", ("--workers", "513")),
                ("--workers", ("--workers", "-1")),
                ("--workers", ("--workers", "many")),
                ("--workers", ("--workers",)),
                ("--nonsense", ("--nonsense",)),
                ("one folder", (self.root,))):
            result = self.run_command("serve", self.root, *arguments)
            self.assertEqual(result.returncode, 2, arguments)
            self.assertIn(word, result.stderr)
            self.assertEqual(result.stdout, "")
        self.assertEqual(self.run_command("serve").returncode, 2)
        self.assertEqual(self.run_command("nonsense").returncode, 2)
        self.assertEqual(self.run_command().returncode, 2)

    def test_help_and_version(self):
        for arguments in (("--help",), ("serve", "--help"), ("load", "--help"),
                          ("--version",)):
            result = self.run_command(*arguments)
            self.assertEqual(result.returncode, 0)
            self.assertIn("pirn", result.stdout)

    def test_what_cannot_be_served(self):
        missing = os.path.join(self.folder, "missing")
        result = self.run_command("serve", missing)
        self.assertEqual(result.returncode, 1)
        self.assertIn(missing, result.stderr)
        result = self.run_command("serve",
                                  os.path.join(self.root, "small.txt"))
        self.assertEqual(result.returncode, 1)

    def test_taken_port(self):
        running = self.start()
        address = "%s:%d" % running.address
        result = self.run_command("serve", self.root, "--listen", address)
        self.assertEqual(result.returncode, 1)
        self.assertIn(address, result.stderr)

    def test_log_is_one_clean_line_per_request(self):
        running = self.start("--log")
        with running.connect() as client:
            client.request("/small.txt")
            client.request("/caf\xe9?\x80")
            client.send("nonsense\r\n\r\n")
            client.read_response()
        status, _, err = running.stop()
        self.assertEqual(status, 0)
        lines = err.splitlines()
        self.assertEqual(len(lines), 3, err)
        self.assertTrue(lines[0].endswith(
            f'"GET /small.txt" 200 {len(SMALL)}'), lines[0])
        self.assertTrue(err.isascii())
        self.assertTrue(lines[2].endswith('"- -" 400 16'), lines[2])

    def test_ipv6(self):
        if not socket.has_ipv6 or not os.path.exists("/proc/net/if_inet6"):
            self.skipTest("no IPv6")
        running = server.Server(self.root, "--listen", "[::1]:0")
        self.addCleanup(running.kill)
        self.assertEqual(running.address[0], "[::1]")
        with socket.create_connection(("::1", running.address[1]),
                                      server.PATIENCE_S) as client:
            client.sendall(f"GET /small.txt HTTP/1.0\r\n\r\n".encode())
            data = b""
            while True:
                piece = client.recv(65536)
                if not piece:
                    break
                data += piece
        self.assertTrue(data.endswith(SMALL))
        self.assertEqual(running.stop()[0], 0)


if __name__ == "__main__":
    server.main("__main__")
