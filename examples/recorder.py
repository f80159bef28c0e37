"""An agent in Python that survives kill -9, its own and the server's. Needs nothing but Python's standard library.

    holdfast serve --port 4040                       # in another terminal: it records
    export HOLDFAST_TOKEN="$(holdfast serve --show-token)"
    python3 examples/recorder.py

It prints where to kill it. Start it again, and it goes on: no message is lost, no tool runs twice, and a tool that was
cut off is looked up, so that the model knows what happened.
"""

import json
import os
import sys
import time
import urllib.error
import urllib.request
import uuid

SERVER = os.environ.get("HOLDFAST_SERVER", "http://127.0.0.1:4040")
TOKEN = os.environ["HOLDFAST_TOKEN"]
PATIENCE_SECONDS = 30
PROMPT = "Count six stars."
SUMMARY = "Summary: "
COMPACT_AFTER = 5


class Refused(Exception):
    """The server has answered, with a problem document (RFC 9457)."""

    def __init__(self, problem):
        super().__init__(f"{problem['detail']} [{problem['code']}]")
        self.code = problem["code"]
        self.status = problem["status"]


def call(method, path, body=None):
    """One request. If no answer comes, it is sent again: every record has a key, so it is recorded once."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        request = urllib.request.Request(SERVER + path, method=method)
        request.add_header("Authorization", f"Bearer {TOKEN}")
        data = None
        if body is not None:
            data = json.dumps(body).encode()
            request.add_header("Content-Type", "application/json")
        try:
            with urllib.request.urlopen(request, data, timeout=10) as answer:
                text = answer.read()
                return json.loads(text) if text else None
        except urllib.error.HTTPError as error:
            problem = json.loads(error.read())
            if problem["status"] != 503 or time.monotonic() > deadline:
                raise Refused(problem) from None
        except (OSError, ValueError):
            # The server is gone, and may come back; or it died in the middle of its answer.
            if time.monotonic() > deadline:
                raise
        time.sleep(0.1)


class Recording:
    """One session on the server, and the right to record it."""

    def __init__(self, key):
        # The same key leads to the same session, so nothing has to be kept here. Whoever recorded it before is over.
        self.state = call("POST", "/recordings", {"key": key, "dialect": "anthropic", "title": key, "app": "recorder.py"})
        self.path = f"/sessions/{self.state['session']}"

    def record(self, **record):
        """Durable when it returns."""
        body = {"recorder": self.state["recorder"], "key": str(uuid.uuid4()), "record": record}
        recorded = call("POST", self.path + "/records", body)
        print(f"acknowledged {recorded['last']}", flush=True)

    def request(self):
        """The messages for the model: its provider accepts them as they are, whatever happened before."""
        return call("POST", self.path + "/requests", {"recorder": self.state["recorder"]})["messages"]

    def conversation(self):
        """The recorded messages with their ids, oldest first."""
        return call("GET", self.path + "/recording/messages")["messages"]

    def open_calls(self):
        query = f"/recording?recorder={self.state['recorder']}"
        turn = call("GET", self.path + query)["turn"]
        return [one for one in turn["calls"] if one["state"] == "never-started" or one.get("replay") == "safe"]


def here(point):
    """Where a test, or you, may kill this process."""
    print(f"{point}: kill -9 {os.getpid()} now, if you like", flush=True)
    time.sleep(float(os.environ.get("HOLDFAST_PAUSE", "0.5")))


def parts_of(message):
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def stars_in(messages):
    """How many stars these messages know of: by a summary of what came before, and by the results of calls."""
    known = 0
    for part in [part for message in messages if message["role"] == "user" for part in parts_of(message)]:
        if part["type"] == "text" and part["text"].startswith(SUMMARY):
            known = int(part["text"][len(SUMMARY) :].split(" ")[0])
        if part["type"] == "tool_result" and not part.get("is_error"):
            known += 1
    return known


def model(messages):
    """Stands in for a model: asks for two stars at a time until there are six, then sums up. Yields text, then the answer."""
    known = stars_in(messages)
    text = f"I know {known} stars."
    for word in text.split(" "):
        yield "text", word + " "
    content = [{"type": "text", "text": text}]
    if known < 6:
        for _ in range(2):
            content.append({"type": "tool_use", "id": f"call_{uuid.uuid4().hex[:12]}", "name": "count_star", "input": {}})
    yield "answer", {"role": "assistant", "content": content}


def compact(recording):
    """Replaces a long conversation by a summary, its prompt and its last step: at once, or not at all."""
    entries = recording.conversation()
    if len(entries) <= COMPACT_AFTER:
        return
    # Calls stay with their results.
    last = max(at for at, entry in enumerate(entries) if entry["message"]["role"] == "assistant")
    known = stars_in([entry["message"] for entry in entries[:last]])
    prompt = next(entry for entry in entries if entry["message"]["content"] == PROMPT)
    items = [{"message": {"role": "user", "content": f"{SUMMARY}{known} stars were counted."}}]
    items += [{"keep": entry["id"]} for entry in [prompt, *entries[last:]]]
    here("compacting")
    recording.record(type="replace", reason="compaction", items=items)
    print(f"compacted {len(entries)} messages to {len(items)}", flush=True)
    here("compacted")


def run_tool(recording, call_id):
    """The start is durable before the tool runs, its outcome before anybody hears of it."""
    recording.record(type="tool.started", call=call_id, probe=True)
    here("tool")
    with open("stars.txt", "a", encoding="utf-8") as file:
        file.write(call_id + "\n")
    here("ran")
    recording.record(type="tool.ended", call=call_id, value="a star")


def settle(recording, call_id):
    """An earlier process was killed in this tool. Its effect says how far it got: a payment service would be asked."""
    stars = ""
    if os.path.exists("stars.txt"):
        with open("stars.txt", encoding="utf-8") as file:
            stars = file.read()
    found = {"value": "a star"} if call_id in stars.split() else {"didNotHappen": True}
    recording.record(type="tool.settled", call=call_id, **found)


def work(recording):
    """One turn, from wherever it stands, to its end."""
    state = recording.state
    if state["next"] == "resume":
        for one in state["interruption"]["calls"]:
            print(f"{one['name']} {one['id']}: {one['state']}", flush=True)
            if one["state"] == "outcome-unknown":
                settle(recording, one["id"])
        recording.record(type="turn.resume", calls="rerun")
        for one in recording.open_calls():
            run_tool(recording, one["id"])
    elif state["next"] == "end":
        recording.record(type="turn.end")
        return
    elif state["next"] == "start":
        recording.record(type="turn.start", prompt={"role": "user", "content": PROMPT})
    while True:
        compact(recording)
        messages = recording.request()
        for kind, value in model(messages):
            if kind == "text":
                recording.record(type="draft", deltas=[{"text": value}])
                continue
            here("answer")
            calls = [part["id"] for part in value["content"] if part["type"] == "tool_use"]
            recording.record(type="messages", messages=value, end=not calls)
            here("answered")
            if not calls:
                return
            for call_id in calls:
                run_tool(recording, call_id)


def main():
    key = sys.argv[1] if len(sys.argv) > 1 else "stars"
    while True:
        recording = Recording(key)
        try:
            work(recording)
            call("DELETE", f"{recording.path}/recording?recorder={recording.state['recorder']}")
            print(f"finished session {recording.state['session']}", flush=True)
            return
        except Refused as refused:
            # The server was restarted, or its disk failed: the turn goes on where its records end.
            if refused.code not in ("RECORDER_UNKNOWN", "SYNC_FAILED", "LEASE_LOST"):
                raise
            print(f"again: {refused.code}", flush=True)


main()
