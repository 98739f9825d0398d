#!/usr/bin/env python3
"""A worker for Lavra in Python, with nothing but the standard library.

It takes tasks of the type `wordcount`, whose payload is {"text": "..."}, and leaves {"words": n}.

    lavra serve &
    python3 examples/worker.py &
    lavra task create wordcount --payload '{"text": "so many words"}' --wait

A server on another machine needs a key with the role writer, in LAVRA_API_KEY:
`lavra key create wordcount --role writer` makes one.

Copy it and replace `count_words` by your own work. What the rest guards against:
  - the server is away for a while, or a proxy answers in its place: every call is repeated until it answers;
  - this process dies or hangs: no heartbeat for 10 s, and another worker gets the task;
  - somebody cancels the task: the heartbeat says so, and the work stops between two steps;
  - this process is told to stop (SIGTERM): it gives the task back, as if it had never had it;
  - the heartbeat is refused or breaks: the same, and it ends with an error.
"""

import argparse
import http.client
import json
import os
import signal
import sys
import threading
import time
import urllib.error
import urllib.request
import uuid


class Lost(Exception):
    """The task is no longer ours: it was cancelled, taken over, or has ended."""


class Server:
    def __init__(self, base):
        self.base = base.rstrip("/")
        self.headers = {"Content-Type": "application/json"}
        if key := os.environ.get("LAVRA_API_KEY"):
            self.headers["Authorization"] = f"Bearer {key}"

    def post(self, path, body, patience=float("inf")):
        """Posts JSON and returns the answer; asks again for `patience` seconds if there is none.

        Repeating is safe. A claim whose answer got lost is given back by the server; a report that
        was heard the first time is answered with 409 the second time, which means: nothing to do.
        """
        give_up = time.monotonic() + patience
        while True:
            status, said = self.ask(path, json.dumps(body).encode())
            if status < 300:
                return said
            problem = said if isinstance(said, dict) else {}
            if problem.get("code") == "task_lost":
                raise Lost(problem.get("detail"))
            if problem and status < 500 and status != 429:  # We are wrong, and would be wrong again.
                raise SystemExit(f"{path}: {problem.get('detail', status)}")
            if time.monotonic() > give_up:
                raise SystemExit(f"{self.base} does not answer")
            time.sleep(0.5)

    def ask(self, path, data):
        """The status and the JSON of one answer; if there is none, it is as if the server were away."""
        request = urllib.request.Request(self.base + path, data, self.headers)
        try:
            try:
                answer = urllib.request.urlopen(request, timeout=60)
            except urllib.error.HTTPError as refusal:
                answer = refusal
            with answer:
                return answer.status, json.loads(answer.read() or b"null")
        except (OSError, http.client.HTTPException, ValueError):
            return 503, None  # Nobody there, cut off in the middle, or a proxy's page in its place.


class Worker:
    def __init__(self, server, pause):
        self.server, self.pause = server, pause
        self.id = str(uuid.uuid4())  # A new one at every start: an old one may hold old tasks.
        self.held = {}  # The tasks in our hands, by id.
        self.lost = set()  # The ids and tokens of those that we should stop.
        self.broken = None  # Why the heartbeat ended, if it did.

    def run(self):
        threading.Thread(target=self.beat, daemon=True).start()
        try:
            while True:
                # The answer comes as soon as there is something to do, or empty after 20 s.
                wish = {"worker": self.id, "name": "wordcount.py", "types": ["wordcount"],
                        "limit": 1, "wait_seconds": 20}
                for task in self.server.post("/tasks:claim", wish)["tasks"]:
                    self.work(task)
        finally:  # However we end: what we hold goes back into the queue.
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            for task in list(self.held.values()):
                self.report(task, "release", patience=5)
            self.server.post(f"/workers/{self.id}:retire", {}, patience=5)

    def beat(self):
        """Says every 3 s that we live and what we hold, and hears what we should stop."""
        try:
            while True:
                tokens = {task["id"]: task["token"] for task in list(self.held.values())}
                held = [{"id": id, "token": token} for id, token in tokens.items()]
                answer = self.server.post(f"/workers/{self.id}:heartbeat", {"held": held})
                self.lost.update((task["id"], tokens[task["id"]]) for task in answer["lost"])
                time.sleep(answer["heartbeat_seconds"])
        except BaseException as error:  # Of a thread that ends nobody hears, and our tasks would go to others.
            self.broken = f"the heartbeat ended: {type(error).__name__}: {error}"
            signal.pthread_kill(threading.main_thread().ident, signal.SIGTERM)

    def work(self, task):
        self.held[task["id"]] = task
        try:
            words = self.count_words(task)
        except Lost:
            print(f"{task['id']}: stopped, it is no longer ours", flush=True)
            # Says that we have stopped, which the person who cancelled it is waiting to hear.
            self.report(task, "release")
        except Exception as error:  # Try again later; with "retryable": False, never.
            self.report(task, "fail", error=f"{type(error).__name__}: {error}")
        else:
            # What is large belongs into a file or a bucket, and only its address into the result.
            self.report(task, "complete", result={"words": words})
            print(f"{task['id']}: {words} words", flush=True)
        self.held.pop(task["id"])

    def count_words(self, task):
        """The work itself: small steps, and between them a look whether to go on."""
        words = task["payload"]["text"].split()
        for place, _ in enumerate(words):
            if (task["id"], task["token"]) in self.lost:
                raise Lost()
            if place % max(1, len(words) // 10) == 0:  # Ten reports are enough for a bar.
                self.progress(task, place * 100 // len(words), f"Counting {place}/{len(words)}")
            time.sleep(self.pause)
        return len(words)

    def progress(self, task, percent, state):
        body = {"token": task["token"], "progress": percent, "state": state}
        self.server.post(f"/tasks/{task['id']}:progress", body)

    def report(self, task, verb, patience=float("inf"), **fields):
        """The last word on a task. If it is lost, there was nothing left to say."""
        try:
            self.server.post(f"/tasks/{task['id']}:{verb}", {"token": task["token"], **fields}, patience)
        except Lost:
            pass


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Counts words for Lavra.")
    parser.add_argument("--server", default="http://127.0.0.1:8080")
    parser.add_argument("--pause", type=float, default=0, help="seconds per word, to watch it work")
    arguments = parser.parse_args()
    worker = Worker(Server(arguments.server), arguments.pause)
    # SIGTERM ends us like Ctrl-C: by an exception in the main thread, wherever it is. What is broken is an error.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(worker.broken))
    print(f"takes tasks from {arguments.server}", flush=True)
    try:
        worker.run()
    except KeyboardInterrupt:
        pass
