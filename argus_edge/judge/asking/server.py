"""A judge behind any server with the OpenAI-compatible chat API that returns log-probabilities."""

from __future__ import annotations

import base64
import http.client
import json
import os
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from argus_edge.errors import DeviceUnreachableError, RunFailedError, UsageError
from argus_edge.judge.asking.base import Answer, ItemRefusedError, Judge
from argus_edge.judge.asking.pictures import encode_picture

__all__ = ["KEY_VARIABLES", "ServerJudge"]

KEY_VARIABLES = ("ARGUS_EDGE_JUDGE_KEY", "OPENAI_API_KEY")
_MAX_REPLY = 64 << 20
_RETRIES = 4
# The request itself is at fault: too long, an image of a kind or size that the model does not take.
_REFUSED = (400, 413, 415, 422)
_NEXT_STEPS = {
    401: f"for a key set {KEY_VARIABLES[0]}",
    403: f"for a key set {KEY_VARIABLES[0]}",
    404: "check the address (it ends in /v1) and --judge, the model's name there",
}
_MOVED = "the server sends requests elsewhere: give that address, if you trust it, to --server"
_SLOW = "does it work on another request? A slow model needs a longer --timeout; what was answered is kept"
_LATER = "see the server's log, then give the same command again: what was answered is kept"


class _StayHere(urllib.request.HTTPRedirectHandler):
    """Follows no redirection: it would carry the key and the pictures to a host that nobody named."""

    def redirect_request(self, *_: Any) -> None:
        """Say that there is nothing to follow; the answer becomes an HTTPError."""


_OPENER = urllib.request.build_opener(_StayHere)


class ServerJudge(Judge):
    """Asks ``POST <server>/chat/completions`` with ``logprobs`` and ``top_logprobs``.

    Parameters
    ----------
    name
        The model, as the server calls it.
    server
        Base address, with or without ``/v1``.
    max_new_tokens
        Of an answer.
    top_logprobs
        Alternatives asked for at each token; ratings below them are recorded as −infinity.
    timeout
        Seconds for one whole answer.
    say
        Told when the server is asked again.
    """

    def __init__(
        self,
        name: str,
        server: str,
        *,
        max_new_tokens: int = 512,
        top_logprobs: int = 20,
        timeout: float = 300,
        say: Callable[[str], None] = lambda message: None,
    ) -> None:
        parts = urllib.parse.urlsplit(server)
        if parts.scheme not in ("http", "https") or not parts.netloc:
            raise UsageError(f"{server[:100]!r} is not an address.", next_step="--server http://HOST:PORT/v1")
        base = server.rstrip("/")
        self.name = name
        self.url = (base if base.endswith("/v1") else base + "/v1") + "/chat/completions"
        self.max_new_tokens, self.top_logprobs, self.timeout = max_new_tokens, top_logprobs, timeout
        self._say = say
        self._key = next((os.environ[variable] for variable in KEY_VARIABLES if os.environ.get(variable)), None)

    def ask(self, prompt: str, images: Sequence[Path]) -> Answer:
        """Ask the server.

        Raises
        ------
        DeviceUnreachableError
            No connection after four tries.
        ItemRefusedError
            The server cannot take this request, or an image cannot be read.
        RunFailedError
            The server fails, or its reply has no log-probabilities.
        """
        content: list[dict[str, Any]] = [
            {"type": "image_url", "image_url": {"url": _data_url(image)}} for image in images
        ]
        content.append({"type": "text", "text": prompt})
        reply = self._post(
            {
                "model": self.name,
                "messages": [{"role": "user", "content": content}],
                "temperature": 0,
                "max_tokens": self.max_new_tokens,
                "logprobs": True,
                "top_logprobs": self.top_logprobs,
            }
        )
        return self._answer(reply)

    def _post(self, document: dict[str, Any]) -> Any:
        headers = {"Content-Type": "application/json"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        # The address was checked to be http or https.
        request = urllib.request.Request(self.url, json.dumps(document).encode(), headers)  # noqa: S310
        for attempt in range(_RETRIES):
            last = attempt == _RETRIES - 1
            try:
                deadline = time.monotonic() + self.timeout
                with _OPENER.open(request, timeout=self.timeout) as response:
                    data = self._read(response, deadline)
                return json.loads(data)
            except urllib.error.HTTPError as error:
                if last or error.code not in (408, 425, 429, 500, 502, 503, 504):
                    what = f"The server answered {error.code}: {_start(error.read(2000))}"
                    if error.code in _REFUSED:
                        raise ItemRefusedError(what, where=self.url) from error
                    if 300 <= error.code < 400:
                        what = f"The server answered {error.code}: go to {error.headers.get('Location', '?')[:300]}"
                    next_step = _MOVED if 300 <= error.code < 400 else _NEXT_STEPS.get(error.code, _LATER)
                    raise RunFailedError(what, where=self.url, next_step=next_step) from error
                reason = f"it answered {error.code}"
            except (OSError, http.client.HTTPException) as error:
                reason = str(getattr(error, "reason", error)).strip() or type(error).__name__
                if isinstance(error, TimeoutError) or isinstance(getattr(error, "reason", None), TimeoutError):
                    reason = f"no whole answer within {self.timeout:g} s"
                    # Asked once more, and no more: four long waits would look like a hang.
                    if attempt:
                        raise DeviceUnreachableError(
                            f"The judge's server gave {reason}, twice.", where=self.url, next_step=_SLOW
                        ) from error
                if last:
                    raise DeviceUnreachableError(
                        f"The judge's server does not answer: {reason}.",
                        where=self.url,
                        next_step="is it running? Then give the same command again: what was answered is kept",
                    ) from error
            except (ValueError, RecursionError) as error:
                raise RunFailedError(
                    f"The server's reply is not JSON: {_start(data)!r}",
                    where=self.url,
                    next_step="is this the address of an OpenAI-compatible chat API? It ends in /v1",
                ) from error
            self._say(f"the judge's server: {reason}; asking again ({attempt + 2} of {_RETRIES})")
            time.sleep(0.5 * 4**attempt)
        raise AssertionError("unreachable")

    def _read(self, response: Any, deadline: float) -> bytes:
        """Return the whole reply, which may come drop by drop, but not for ever."""
        parts, size = [], 0
        while part := response.read1(1 << 16):
            parts.append(part)
            size += len(part)
            if size > _MAX_REPLY:
                raise RunFailedError("The server's reply is too long.", where=self.url)
            if time.monotonic() > deadline:
                raise TimeoutError
        return b"".join(parts)

    def _answer(self, reply: Any) -> Answer:
        try:
            entries = reply["choices"][0]["logprobs"]["content"]
            tokens = [str(entry["token"]) for entry in entries]
            alternatives = []
            for entry in entries:
                found = {str(other["token"]): float(other["logprob"]) for other in entry.get("top_logprobs") or []}
                found.setdefault(str(entry["token"]), float(entry["logprob"]))
                alternatives.append(found)
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise RunFailedError(
                "The server's reply has no log-probabilities of its tokens.",
                where=self.url,
                next_step="use a server and model that support `logprobs` and `top_logprobs` in chat completions",
            ) from error
        return Answer(tokens, alternatives)


def _start(data: bytes) -> str:
    return " ".join(data[:2000].decode(errors="replace").split())[:300]


def _data_url(image: Path) -> str:
    kind, data = encode_picture(image)
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"
