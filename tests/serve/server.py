# SPDX-License-Identifier: MIT
"""tests/serve/server.py - start and stop `pirn serve`, and speak HTTP by hand.

Raw sockets, because a proper client would correct what these tests want wrong.
"""
import ctypes
import os
import re
import resource
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

# Long enough for a loaded machine under a sanitizer; nothing waits for it
# unless something is broken.
PATIENCE_S = 30

pirn = None  # the command; set by main()
workers = "auto"  # for --workers, wherever it runs; set by main()

PR_SET_PDEATHSIG = 1
libc = ctypes.CDLL(None)


def die_with_parent():
    """In a child: a test that is ended by force leaves no server behind."""
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Server:
    """A running `pirn serve` over a folder."""

    def __init__(self, root, *options, descriptors=None):
        self.folder = tempfile.mkdtemp(prefix="pirn-serve-")
        self.clients = []
        port_file = os.path.join(self.folder, "port")

        def before_exec():
            die_with_parent()
            if descriptors is not None:
                resource.setrlimit(resource.RLIMIT_NOFILE,
                                   (descriptors, descriptors))

        self.process = subprocess.Popen(
            [pirn, "serve", root, "--listen", "127.0.0.1:0",
             "--port-file", port_file, "--workers", workers, *options],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            preexec_fn=before_exec)
        try:
            host, port = self.wait_for_address(port_file)
        except BaseException:
            self.kill()
            raise
        self.address = (host, int(port))
        self.url = f"http://{host}:{port}"

    def wait_for_address(self, port_file):
        """The host and port on which it listens, as it writes them."""
        deadline = time.monotonic() + PATIENCE_S
        while not os.path.exists(port_file):
            if self.process.poll() is not None:
                raise AssertionError("no server: " + self.process.stderr.read())
            if time.monotonic() > deadline:
                raise AssertionError("the server does not start")
            time.sleep(0.005)
        with open(port_file, encoding="ascii") as file:
            return file.read().strip().rsplit(":", 1)

    def connect(self, receive_buffer=None):
        """A connection, which kill() closes at the latest."""
        client = Client(self.address, receive_buffer)
        self.clients.append(client)
        return client

    def signal(self, number=signal.SIGTERM):
        self.process.send_signal(number)

    def wait(self):
        """Wait for the end: exit status, standard output, standard error."""
        try:
            out, err = self.process.communicate(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.communicate()
            raise AssertionError("the server does not stop") from None
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)
        return self.process.returncode, out, err

    def stop(self):
        self.signal()
        return self.wait()

    def kill(self):
        """For clean-up, whatever state it is in."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate()
        for client in self.clients:
            client.socket.close()
        shutil.rmtree(self.folder, ignore_errors=True)


class Response:
    def __init__(self, status, headers, body):
        self.status = status
        self.headers = headers
        self.body = body

    def __getitem__(self, name):
        return self.headers.get(name.lower())


class Client:
    """One connection; reads what it asked for and notices what it did not."""

    def __init__(self, address, receive_buffer=None):
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        if receive_buffer is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF,
                                   receive_buffer)
        self.socket.settimeout(PATIENCE_S)
        self.pending = b""
        try:
            self.socket.connect(address)
        except OSError:
            self.socket.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, data):
        if isinstance(data, str):
            data = data.encode("latin-1")
        self.socket.sendall(data)

    def receive(self, size=65536):
        return self.socket.recv(size)

    def read_head(self):
        """Status and headers; the connection's end is an EOFError."""
        while b"\r\n\r\n" not in self.pending:
            data = self.receive()
            if not data:
                raise EOFError(self.pending)
            self.pending += data
        head, self.pending = self.pending.split(b"\r\n\r\n", 1)
        lines = head.decode("latin-1").split("\r\n")
        version, status, _ = lines[0].split(" ", 2)
        assert version == "HTTP/1.1", lines[0]
        headers = {}
        for line in lines[1:]:
            name, value = line.split(":", 1)
            assert name.lower() not in headers, "twice: " + name
            headers[name.lower()] = value.strip()
        return int(status), headers

    def read_exactly(self, size):
        while len(self.pending) < size:
            data = self.receive()
            if not data:
                raise EOFError(f"{len(self.pending)} of {size} bytes")
            self.pending += data
        body, self.pending = self.pending[:size], self.pending[size:]
        return body

    def read_response(self, method="GET"):
        status, headers = self.read_head()
        size = int(headers.get("content-length", 0))
        if method == "HEAD" or status == 304:
            size = 0
        return Response(status, headers, self.read_exactly(size))

    def request(self, target, method="GET", version="1.1", **headers):
        """Ask and read; headers with underscores for dashes."""
        text = f"{method} {target} HTTP/{version}\r\n"
        headers.setdefault("host", "test")
        for name, value in headers.items():
            if value is not None:
                text += f"{name.replace('_', '-')}: {value}\r\n"
        self.send(text + "\r\n")
        return self.read_response(method)

    def is_closed(self):
        """True if the server ends the connection without another byte; a
        reset, which may take bytes away, is an error."""
        return self.pending == b"" and self.receive() == b""

    def is_silent(self):
        """True if nothing is there to read at this moment."""
        return (self.pending == b""
                and not select.select([self.socket], [], [], 0)[0])


def worker_count():
    """How many the server has; an upper limit where it chooses itself."""
    return (len(os.sched_getaffinity(0)) if workers == "auto"
            else int(workers))


def worker_lines(text):
    """What a report says of workers: their number, and a line for each, in
    order.  How many polls each made."""
    found = re.findall(r"(?m)^worker (\d+): (\d+) polls, \d+ steals, "
                       r"\d+ parks$", text)
    assert [int(index) for index, _ in found] == list(range(len(found))), text
    assert not found or f"\nworkers: {len(found)} (" in text, text
    return [int(polls) for _, polls in found]


def main(module):
    """Run the tests of a file: FILE PIRN [--workers N] [unittest options]."""
    import unittest
    global pirn, workers
    if len(sys.argv) < 2:
        sys.exit("usage: " + os.path.basename(sys.argv[0])
                 + " PIRN [--workers N] [TEST]...")
    pirn = os.path.abspath(sys.argv.pop(1))
    if sys.argv[1:2] == ["--workers"]:
        workers = sys.argv[2]
        del sys.argv[1:3]
    unittest.main(module=module)
