#!/usr/bin/env python3
"""A docker whose "containers" are files: `run --detach` writes its words down, `exec` runs what follows the name.

What it was asked is appended to $FAKE_DOCKER/asked, one JSON list a line; `run` says what is in $FAKE_DOCKER/fault.
"""

import json
import os
import sys

# Options of `docker run` that take a word.
VALUED = {"--pull", "--name", "--runtime", "--pid", "--ipc", "--network", "--user", "--group-add", "--env"}
VALUED |= {"--cap-drop", "--security-opt", "--tmpfs", "--mount", "--entrypoint"}


def main(words):
    folder = os.environ["FAKE_DOCKER"]
    with open(os.path.join(folder, "asked"), "a") as file:
        file.write(json.dumps(words) + "\n")
    command, rest = words[0], words[1:]
    if command == "run":
        return run(folder, rest)
    name = rest[-1] if command != "exec" else rest[0]
    container = os.path.join(folder, name)
    if not os.path.exists(container):
        sys.stderr.write(f"Error: No such container: {name}\n")
        return 1
    if command == "inspect":
        print("true")
    elif command == "rm":
        os.unlink(container)
    elif command == "exec":
        os.execvp(rest[1], rest[1:])
    return 0


def run(folder, words):
    fault = os.path.join(folder, "fault")
    if os.path.exists(fault):
        with open(fault) as file:
            sys.stderr.write(file.read())
        return 125
    options, words = {}, list(words)
    while words[0].startswith("--"):
        option = words.pop(0)
        options.setdefault(option, []).append(words.pop(0) if option in VALUED else "")
    (name,) = options["--name"]
    for mount in options["--mount"]:
        fields = dict(field.partition("=")[::2] for field in mount.split(","))
        assert os.path.exists(fields["source"]), mount
    with open(os.path.join(folder, name), "w") as file:
        json.dump({"options": options, "image": words[0], "command": words[1:]}, file)
    print("0123456789ab")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
