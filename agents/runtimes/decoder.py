"""Writing text with a decoder and its cache of keys and values: the prompt once, then a token a call, greedily.

The number of tokens is fixed: an end token is written like any other, so that every unit of work is the same.
"""

from time import perf_counter


class Decoder:
    """A decoder, its prompt, and how its tensors are called.

    Parameters
    ----------
    model
        Its runtime, loaded.
    how
        The bundle's ``generation`` with ``output_tokens``, and ``past``: None where the past may have any length, else
        its one length. Such a decoder takes a token a call: the prompt is read so as well, a shorter past lies at the
        right end, and the attention mask hides what is before it.
    prompt
        Arrays by input name: ids of shape (1, length), positions of shape (…, 1, length) where it takes them.
    feeds
        Of the steps prefill and decode: input name -> "component.output".
    """

    def __init__(self, model, how, prompt, feeds):
        import numpy

        self._numpy, self._run, self._array = numpy, model.function(), model.array
        self._how, self._prompt, self._feeds = how, prompt, feeds
        self._ids = prompt[how["input_ids"]]
        self._length = self._ids.shape[1]
        self._count = how["output_tokens"]
        self.written = []
        kv = how["kv"]
        self._cache = [
            (past.format(layer=layer), present.format(layer=layer))
            for layer in range(kv["layers"])
            for past, present in ((kv["past_key"], kv["present_key"]), (kv["past_value"], kv["present_value"]))
        ]
        sizes = {"batch": 1, "kv_heads": kv["kv_heads"], "past": how.get("past") or 0, "head_dim": kv["head_dim"]}
        nothing = numpy.zeros([sizes[axis] for axis in kv["layout"]], kv["dtype"])
        self._empty = {past: nothing for past, _ in self._cache}
        axis = kv["layout"].index("past")
        self._shift = (slice(None),) * axis + (slice(1, None),)
        self._token = numpy.zeros((1, 1), self._ids.dtype)
        self._mask = how.get("attention_mask")
        total = how["past"] + 1 if how.get("past") else self._length + self._count
        kind = prompt[self._mask].dtype if self._mask else "int64"
        self._marked = (numpy.zeros if how.get("past") else numpy.ones)((1, total), kind)
        self._positions = how.get("position_ids")
        if self._positions:
            self._places = prompt[self._positions]
            self._after = self._places[..., :1] * 0 + self._places.max() + 1
        self._features = how.get("image_features")

    def cache_bytes(self):
        """Return the bytes of keys and values after the last token that was read."""
        return int(sum(self._array(value).nbytes for value in self._last.values()))

    def write(self, seen, row, at):
        """Read the prompt and write the tokens; put the moment at which each was known into ``row`` from ``at`` on.

        Parameters
        ----------
        seen
            Outputs of the steps before, by component.
        """
        self.written = []
        (self._write_fixed if self._how.get("past") else self._write_growing)(seen, row, at)

    def _fed(self, phase, seen):
        fed = {}
        for name, source in self._feeds[phase].items():
            component, _, output = source.partition(".")
            value = seen[component][output]
            if name == self._features:
                # One row a placeholder: the vision tower may give them by image.
                value = value.reshape(-1, value.shape[-1])
            fed[name] = value
        return fed

    def _best(self, outputs):
        logits = self._array(outputs[self._how["logits"]])[0, -1]
        token = int(logits.argmax())
        if token == self._how.get("image_token_id"):
            # A placeholder without a feature cannot be read again: random weights may well write one.
            token = int(self._numpy.delete(logits, token).argmax())
            token += token >= self._how["image_token_id"]
        self.written.append(token)
        return token

    def _write_growing(self, seen, row, at):
        how, run, clock = self._how, self._run, perf_counter
        first = self._fed("prefill", seen)
        fed = dict(self._prompt, **self._empty)
        fed.update(first)
        outputs = run(fed)
        token = self._best(outputs)
        row[at] = clock()
        again = self._fed("decode", seen)
        if self._features and self._features not in again:
            # The placeholders were in the prompt: later calls take no image feature.
            again[self._features] = first[self._features][:0]
        for step in range(1, self._count):
            fed = dict(again)
            self._token[0, 0] = token
            fed[how["input_ids"]] = self._token
            if self._mask:
                fed[self._mask] = self._marked[:, : self._length + step]
            if self._positions:
                fed[self._positions] = self._after + (step - 1)
            for past, present in self._cache:
                fed[past] = outputs[present]
            outputs = run(fed)
            token = self._best(outputs)
            row[at + step] = clock()
        self._last = {past: outputs[present] for past, present in self._cache}

    def _write_fixed(self, seen, row, at):
        how, run, clock = self._how, self._run, perf_counter
        fed = self._fed("decode", seen)
        features = self._fed("prefill", seen).get(self._features) if self._features else None
        slots = self._ids[0] == how.get("image_token_id")
        rows, image = slots.cumsum() - 1, how.get("image_token_id")
        if features is not None:
            features = self._array(features)
            fed[self._features] = features[:1]
        fed.update(self._empty)
        self._marked[:] = 0
        token = None
        for step in range(self._length + self._count - 1):
            in_prompt = step < self._length
            self._token[0, 0] = self._ids[0, step] if in_prompt else token
            fed[how["input_ids"]] = self._token
            if features is not None and in_prompt and self._ids[0, step] == image:
                fed[self._features] = features[rows[step] : rows[step] + 1]
            if self._mask:
                self._marked[0, -(step + 1) :] = 1
                fed[self._mask] = self._marked
            if self._positions:
                inside = self._places[..., step : step + 1] if in_prompt else self._after + (step - self._length)
                fed[self._positions] = inside
            outputs = run(fed)
            if step >= self._length - 1:
                token = self._best(outputs)
                row[at + step - self._length + 1] = clock()
            for past, present in self._cache:
                fed[past] = self._array(outputs[present])[self._shift]
        self._last = {past: outputs[present] for past, present in self._cache}
