"""A small OpenAI-compatible server, and everything that such a server can do wrong."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

OVERHEAD = 7  # tokens of a chat's template
FIRST_S, TOKEN_S = 0.02, 0.004


class Handler(BaseHTTPRequestHandler):
    """Answers ``/v1/models`` and ``/v1/chat/completions``; ``fault`` names what goes wrong."""

    protocol_version = "HTTP/1.1"
    fault = ""
    seen: list[dict]

    def log_message(self, *_):
        """Say nothing."""

    def answer(self, status, document):
        body = document if isinstance(document, bytes) else json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        if self.path != "/v1/models" or self.fault == "no-models":
            return self.answer(404, {"detail": "Not Found"})
        if self.fault == "loading" and len(self.seen) < 2:
            self.seen.append({})
            return self.answer(503, {"error": {"message": "Loading model"}})
        if self.fault == "key":
            return self.answer(401, {"error": {"message": "no key"}})
        if self.fault == "html":
            return self.answer(200, b"<html>hello</html>")
        names = {"two-models": ["one", "two"], "half": ["/srv/models/tiny.gguf"]}.get(self.fault, ["tiny-vlm"])
        return self.answer(200, {"object": "list", "data": [{"id": name} for name in names]})

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.seen.append(asked)
        content = asked["messages"][0]["content"]
        text = content if isinstance(content, str) else content[0]["text"]
        usage = {"prompt_tokens": len(text.split()) + OVERHEAD, "completion_tokens": asked["max_tokens"]}
        if self.fault == "strict" and "ignore_eos" in asked:
            return self.answer(422, {"detail": "extra fields not permitted"})
        if self.fault == "error":
            return self.answer(500, {"error": {"message": "the model fell over"}})
        if not asked.get("stream"):
            told = {} if self.fault == "no-usage" else {"usage": usage}
            return self.answer(200, {"choices": [{"message": {"content": "x"}}], **told})
        if self.fault == "no-stream":
            return self.answer(200, {"choices": [{"message": {"content": "x"}}], "usage": usage})
        return self.stream(asked, usage)

    def stream(self, asked, usage):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.close_connection = True
        self.end_headers()
        if self.fault == "hang":
            time.sleep(30)
        time.sleep(FIRST_S)
        self.send({"choices": [{"delta": {"role": "assistant", "content": ""}}]})
        if self.fault == "garbage":
            self.wfile.write(b"data: {not json\n\n")
            return
        if self.fault == "long-line":
            self.wfile.write(b"data: " + b"x" * (3 << 20) + b"\n\n")
            return
        count = asked["max_tokens"]
        pieces = {"half": count // 2, "pairs": count // 2, "endless": 10_000, "empty": 0}.get(self.fault, count)
        for number in range(pieces):
            if self.fault == "dies" and number == 3:
                return
            if self.fault == "stream-error" and number == 3:
                self.send({"error": {"message": "out of memory"}})
                return
            self.send({"choices": [{"delta": {"content": "word "}}]})
            if self.fault != "endless":
                time.sleep(TOKEN_S)
        self.wfile.write(b": a comment\n\n")
        self.send({"choices": [{"delta": {}, "finish_reason": "length"}]})
        if self.fault == "half":
            usage["completion_tokens"] = pieces
        if self.fault != "no-usage":
            self.send({"choices": [], "usage": usage})
        self.wfile.write(b"data: [DONE]\n\n")

    def send(self, document):
        self.wfile.write(b"data: " + json.dumps(document).encode() + b"\r\n\r\n")
        self.wfile.flush()


class Quiet(ThreadingHTTPServer):
    """Clients that leave early are no news."""

    daemon_threads = True

    def handle_error(self, request, client_address):
        """Say nothing."""


@contextmanager
def serving(fault: str = "") -> Iterator[tuple[str, list[dict]]]:
    """Serve within this process; yields the URL, and the requests as they come."""
    import threading

    seen: list[dict] = []
    handler = type("Faulty", (Handler,), {"fault": fault, "seen": seen})
    server = Quiet(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1", seen
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def served_elsewhere(ballast: int = 0) -> Iterator[tuple[str, int]]:
    """Serve in a process of its own whose child holds so many bytes; yields the URL and the process's id."""
    process = subprocess.Popen([sys.executable, __file__, str(ballast)], stdout=subprocess.PIPE, text=True)
    assert process.stdout
    port = int(process.stdout.readline())
    try:
        yield f"http://127.0.0.1:{port}/v1", process.pid
    finally:
        process.terminate()
        process.wait()


def main(ballast: int) -> None:
    """Serve until the process is ended."""
    import os

    server = Quiet(("127.0.0.1", 0), type("Whole", (Handler,), {"seen": []}))
    child = os.fork()
    if child == 0:
        os.close(server.fileno())
        held = bytearray(b"x") * ballast
        while os.getppid() != 1 and held:
            time.sleep(0.05)
        os._exit(0)
    print(server.server_address[1], flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main(int(sys.argv[1]))
