"""A server on this device that speaks OpenAI's protocol: a call is one chat completion, streamed.

Marks: the arrival of each piece of text, 0 where none came; last, the number of tokens by the server's own count.
Every request begins with words of its own, so that no cache of prompts spares the server its work.
"""

import base64
import json
from array import array
from random import Random
from time import monotonic, sleep

from ..home import Fault
from .base import BaseRuntime

VOCABULARY = (
    "time year people way day man thing woman life child world school state family student group country problem hand "
    "part place case week company system program question work number night point home water room mother area money "
    "story fact month lot right study book eye job word business issue side kind head house service friend father "
    "power hour game line end member law car city name team minute idea body back parent face others level office door"
)
INSTRUCTION = "Write a long story with these words. Do not stop early."
MARK = "@@words@@"
CALIBRATIONS = 3
# What a server answers while it loads its model, and how often it is asked.
LOADING = 503
LOOK_AGAIN_S = 0.5
KINDS = {b"\x89PNG": "png", b"\xff\xd8\xff": "jpeg", b"RIFF": "webp", b"GIF8": "gif"}
# What servers know beside the protocol: go on until the length is reached. Left out where it is refused.
EXTRAS = {"ignore_eos": True}
USAGE = {"stream_options": {"include_usage": True}}


def data_url(path):
    """Return a picture's file as a data URL. Raises Fault input-rejected where it is none."""
    with open(path, "rb") as file:
        content = file.read()
    kind = next((kind for magic, kind in KINDS.items() if content.startswith(magic)), None)
    if kind is None:
        raise Fault("input-rejected", "%s is no PNG, JPEG, WebP or GIF" % path.rpartition("/")[2])
    return "data:image/%s;base64,%s" % (kind, base64.b64encode(content).decode("ascii"))


class Runtime(BaseRuntime):
    """A served model."""

    formats = ("none",)

    def __init__(self, part, folder):
        super().__init__(part, folder)
        self._target = part.get("server") or {}
        self._asked = int(self._target.get("output_tokens", 0))
        self.marks = self._asked + 1
        self._columns = None
        # Seeded by the system: what an earlier run asked may still be in a cache of the server's.
        self._random, self._vocabulary = Random(), VOCABULARY.split()
        self._pids, self._why = set(), None

    def check(self):
        """Check what was asked for."""
        super().check()
        if not self._target.get("url") or self._asked < 1:
            raise Fault("bad-job", "the server runtime needs a URL and a number of tokens")

    def import_library(self):
        """Import the client."""
        from .. import chat

        self._chat = chat
        return ""

    def load(self):
        """Find the server, its model and its processes, and the number of words that make the prompt."""
        self._address = self._chat.Address(self._target["url"], float(self._target.get("timeout_s", 300.0)))
        status, document, name, here = self._ready()
        wanted = self._target.get("model")
        if status != 200 and not (status in (404, 405, 501) and wanted):
            raise self._chat.said(status, document, "/models")
        known = self._chat.models(document) if status == 200 else [wanted]
        if not wanted and len(known) != 1:
            listed = ", ".join(known)[:500]
            raise Fault("server-error", "the server has %d models; name one as MODEL: %s" % (len(known), listed))
        self._model = wanted or known[0]
        if wanted and known and wanted not in known:
            self.notes.append("the server lists no model %s, but %s" % (wanted, ", ".join(known)[:300]))
        self.figures.update(served_model=self._model[:128], runtime_version=name, providers_used=["server"])
        self._here = here
        self._find()
        self._images = [data_url(path) for path in self._target.get("images") or []]
        self._extras = True
        self._calibrate()

    def _ready(self):
        """Ask for the models; wait for a server that is still loading its own."""
        end = monotonic() + float(self._target.get("timeout_s", 300.0))
        while True:
            answer = self._address.ask("GET", "/models")
            if answer[0] != LOADING or monotonic() > end:
                return answer
            sleep(LOOK_AGAIN_S)

    def _find(self):
        from .. import listening

        if self._here:
            self._pids, self._why = listening.server(self._address.port)
        else:
            self._why = "the server is not on this device"

    def _request(self, tokens, stream=True, url=None):
        """Return a request's body but for its words, as the bytes before and after them."""
        text = MARK + "\n" + INSTRUCTION
        image = [{"type": "text", "text": text}, {"type": "image_url", "image_url": {"url": url}}]
        document = {
            "model": self._model,
            "messages": [{"role": "user", "content": image if url else text}],
            "max_tokens": tokens,
            "temperature": 0,
            "stream": stream,
        }
        if self._extras:
            document.update(EXTRAS, min_tokens=tokens)
        if stream:
            document.update(USAGE)
        return json.dumps(document).encode("ascii").split(MARK.encode("ascii"))

    def _prompt(self):
        """Return the words of a request, which differ from request to request: a prompt's cache is of no use."""
        choose, known = self._random.choice, self._vocabulary
        return " ".join([choose(known) for _ in range(self._words)]).encode("ascii")

    def _calibrate(self):
        """Choose how many words make a prompt of the length asked for, by the server's own count."""
        wanted = self._target.get("prompt_tokens") or 64
        self._words, self.figures["prompt_tokens"] = max(1, wanted), None
        for _ in range(CALIBRATIONS):
            count = self._count()
            self.figures["prompt_tokens"] = count
            if count is None:
                self.notes.append("the server does not count its tokens: the prompt is of %d words" % self._words)
                return
            if count == wanted or (count > wanted and self._words == 1):
                return
            self._words = max(1, self._words + wanted - count)

    def _count(self):
        """Return the tokens of a prompt, None where the server does not tell; drops extras that it refuses."""
        before, after = self._request(1, stream=False, url=self._images[0] if self._images else None)
        body = before + self._prompt() + after
        status, document, _, _ = self._address.ask("POST", "/chat/completions", body)
        if status in (400, 422) and self._extras:
            self._extras = False
            return self._count()
        if status != 200:
            raise self._chat.said(status, document, "/chat/completions")
        usage = document.get("usage") if isinstance(document, dict) else None
        count = usage.get("prompt_tokens") if isinstance(usage, dict) else None
        return count if isinstance(count, int) and count > 0 else None

    def bind(self, inputs):
        """Return the call: a request, and its answer to the end."""
        complete, address, asked = self._chat.complete, self._address, self._asked
        row, nothing = (array("d", [0.0] * self.marks) for _ in range(2))
        requests = [self._request(asked, url=url) for url in self._images or [None]]
        calls = [0]

        def call():
            before, after = requests[calls[0] % len(requests)]
            calls[0] += 1
            row[:] = nothing
            chunks, tokens = complete(address, before + self._prompt() + after, row, asked)
            # Without a count of the server's own, its pieces are counted, and that is told by the sign.
            row[asked] = tokens or -chunks
            if self._columns:
                done = self._done
                for column, moment in zip(self._columns, row):
                    column[done] = moment
                self._done = done + 1

        return call

    def record(self, columns):
        """Take the columns of the marks."""
        self._columns, self._done = columns, 0

    def processes(self):
        """Return the server's processes, looked up again: it may have started some."""
        self._find()
        return sorted(self._pids)

    def memory(self):
        """Return the memory of the server's processes."""
        from .. import listening

        if not self._pids:
            self.notes.append("the server's memory is not known: %s" % self._why)
            return {}
        return listening.sizes(self._pids)
