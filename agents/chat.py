"""A client of OpenAI-compatible servers: the list of models, and one chat completion as a stream of events.

What a server answers is not trusted: lines and answers have limits, and whatever is no such answer is a Fault.
"""

import http.client
import json
import socket
from time import perf_counter

from .home import Fault

MAX_LINE_BYTES = 1 << 20
MAX_ANSWER_BYTES = 8 << 20
# A server that goes on beyond so many times what it was asked for is stopped.
MAX_OVERRUN = 4
FIELDS = (b"data", b"event", b"id", b"retry")


def fault(message, *values):
    """Return a Fault of the server."""
    return Fault("server-error", message % values)


class Address:
    """Where a server is: http or https, host, port, and the path that ends in /v1."""

    def __init__(self, url, timeout_s):
        from urllib.parse import urlsplit

        self.url, self._timeout = url, timeout_s
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError as error:
            raise Fault("bad-job", "%r is not a URL: %s" % (url[:200], error)) from error
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise Fault("bad-job", "%r is not a URL of http or https" % url[:200])
        self._connection = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        self.host, self.port = parts.hostname, port or (443 if parts.scheme == "https" else 80)
        self._path = parts.path.rstrip("/")

    def open(self, method, path, body=None):
        """Send a request; return (connection, response), whatever its status. The caller closes the connection."""
        connection = self._connection(self.host, self.port, timeout=self._timeout)
        headers = {"Accept": "text/event-stream, application/json"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        try:
            connection.request(method, self._path + path, body, headers)
            return connection, connection.getresponse()
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise self.broken(error) from error

    def broken(self, error):
        """Return the Fault that a failure of the link means."""
        if isinstance(error, socket.timeout):
            return fault("%s: the server was silent for %g s", self.url, self._timeout)
        if isinstance(error, ConnectionRefusedError):
            return fault("nothing listens at %s on this device: start the server first", self.url)
        return fault("%s: %s: %s", self.url, type(error).__name__, error)

    def ask(self, method, path, body=None):
        """Return (status, JSON document or None, headers' Server, whether the server is on this machine)."""
        connection, response = self.open(method, path, body)
        try:
            here = connection.sock is not None and connection.sock.getpeername()[0] == connection.sock.getsockname()[0]
            text = response.read(MAX_ANSWER_BYTES + 1)
            if len(text) > MAX_ANSWER_BYTES:
                raise fault("%s%s answers more than %d bytes", self.url, path, MAX_ANSWER_BYTES)
        except (OSError, http.client.HTTPException) as error:
            raise self.broken(error) from error
        finally:
            connection.close()
        try:
            document = json.loads(text.decode("utf-8", "replace"))
        except ValueError:
            document = None
        return response.status, document, (response.getheader("Server") or "")[:100], here


def said(status, document, path):
    """Return the Fault of an answer that is not 200."""
    told = document if isinstance(document, dict) else {}
    text = told.get("error") or told.get("detail") or ""
    text = text.get("message", text) if isinstance(text, dict) else text
    hint = " (it wants a key: start it without one)" if status in (401, 403) else ""
    hint = " (does the URL end in /v1?)" if status == 404 else hint
    return fault("%s answers %d%s%s", path, status, hint, ": " + str(text)[:500] if text else "")


def models(document):
    """Return the ids in an answer to /models."""
    rows = document.get("data") if isinstance(document, dict) else None
    if not isinstance(rows, list):
        raise fault("/models answers no list of models")
    return [str(row["id"])[:256] for row in rows if isinstance(row, dict) and row.get("id")]


def choice(document):
    """Return the first choice of a streamed chunk, {} without one."""
    choices = document.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    return first if isinstance(first, dict) else {}


def text_of(document):
    """Return the text that a streamed chunk brings: the answer's, or a reasoning model's."""
    delta = choice(document).get("delta")
    if not isinstance(delta, dict):
        return None
    return delta.get("content") or delta.get("reasoning_content") or delta.get("reasoning")


def ends(document):
    """Return whether a streamed chunk says that the answer is whole."""
    return bool(choice(document).get("finish_reason"))


def events(response):
    """Yield the data of a stream's events as bytes, until it ends. Raises Fault where it is no such stream."""
    while True:
        line = response.readline(MAX_LINE_BYTES + 1)
        if not line:
            return
        if len(line) > MAX_LINE_BYTES:
            raise fault("the server sends a line of more than %d bytes", MAX_LINE_BYTES)
        line = line.strip()
        if not line or line.startswith(b":"):
            continue
        name, _, value = line.partition(b":")
        if name not in FIELDS:
            raise fault("the server answers %r, not a stream of events", line[:80].decode("utf-8", "replace"))
        if name == b"data":
            yield value.strip()


def complete(address, body, moments, asked):
    """Have a chat completion streamed.

    Parameters
    ----------
    body
        Of the request, bytes.
    moments
        Sequence of at least ``asked`` floats: the times at which text came, chunk after chunk.
    asked
        Tokens that were asked for.

    Returns
    -------
    chunks, tokens
        Chunks with text, and the tokens by the server's own count (0 where it does not tell).
    """
    connection, response = address.open("POST", "/chat/completions", body)
    chunks = tokens = 0
    finished = False
    try:
        if response.status != 200:
            text = response.read(MAX_LINE_BYTES).decode("utf-8", "replace")
            try:
                document = json.loads(text)
            except ValueError:
                document = {"error": text.strip()[:200]}
            raise said(response.status, document, "/chat/completions")
        for data in events(response):
            now = perf_counter()
            if data == b"[DONE]":
                finished = True
                break
            try:
                document = json.loads(data.decode("utf-8"))
            except ValueError:
                raise fault("the server sends what is no JSON: %r", data[:80].decode("utf-8", "replace")) from None
            if not isinstance(document, dict):
                raise fault("the server sends what is no chunk: %r", data[:80].decode("utf-8", "replace"))
            if document.get("error"):
                raise said(response.status, document, "the stream")
            if text_of(document):
                if chunks < asked:
                    moments[chunks] = now
                chunks += 1
                if chunks > MAX_OVERRUN * asked + 64:
                    raise fault("the server goes on and on: %d tokens were asked for", asked)
            finished = finished or ends(document)
            usage = document.get("usage")
            if isinstance(usage, dict) and isinstance(usage.get("completion_tokens"), int):
                tokens = usage["completion_tokens"]
    except (OSError, http.client.HTTPException) as error:
        raise address.broken(error) from error
    finally:
        connection.close()
    if not finished:
        raise fault("the server broke off after %d pieces of text", chunks)
    if not chunks:
        raise fault("the server wrote nothing")
    return chunks, tokens
