#!/usr/bin/env python3
"""A worker for Lavra's fleet in Python, with nothing but the standard library.

It reads the ad library of `lavra world` through the HTTP proxy that it is given:

    lavra world --ads 127.0.0.1:8092 --proxies 2 --proxy-port 9000 &
    WORKER_KEY=worker-key python3 examples/fleet_worker.py http://127.0.0.1:8092/v1 &
    echo worker-key | lavra fleet worker add mine --url http://127.0.0.1:8200 --storage-domain http://127.0.0.1:8200

Copy it and replace `open_session` and `pages` by your own. What the rest is for:
  - the orchestrator asks for everything again when an answer got lost: the same Idempotency-Key is the same job;
  - one session at a time, one job at a time;
  - results get their name when they are whole;
  - this process dies: its jobs are unknown to the next one (404), and their missions go back into the queue.
    `lavra worker` keeps them; a worker that does so only has to answer as if nothing had happened.
"""

import hmac
import json
import os
import sys
import threading
import urllib.parse
import urllib.request
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

KEY = os.environ["WORKER_KEY"]
RESULTS = Path("fleet-worker-results")
LOCK = threading.Lock()
JOBS = {}  # By id: status, ads_count, progress_pct, error_message.
KEYS = {}  # The job of an Idempotency-Key.
session = None  # {"status", "browser", "job"}: what the orchestrator has opened.


def open_session(mine, proxy):
    """Ready when a first request came through the proxy; an exception is a session that broke."""
    server = proxy["server"].removeprefix("http://")
    if proxy.get("username"):
        user, password = (urllib.parse.quote(proxy.get(name) or "", safe="") for name in ("username", "password"))
        server = f"{user}:{password}@{server}"
    mine["browser"] = urllib.request.build_opener(urllib.request.ProxyHandler({"http": f"http://{server}"}))
    mine["status"] = "warming_up"
    next(pages(mine, {"date_range": {"start": "2025-01-01", "end": "2025-01-01"}, "languages": ["pt"]}))


def pages(mine, filters):
    """The pages of a scrape, each as (its ads, the number of all pages)."""
    query = {"date_start": filters["date_range"]["start"], "date_end": filters["date_range"]["end"],
             "languages": ",".join(filters["languages"]), "page_size": 150, "page": 1}
    if filters.get("format", "all") != "all":
        query["media_type"] = filters["format"]
    while True:
        url = f"{SOURCE}/ads?{urllib.parse.urlencode(query)}"
        with mine["browser"].open(url, timeout=30) as answer:
            page = json.load(answer)
        yield page["ads"], page["paging"]["pages"]
        if query["page"] >= page["paging"]["pages"]:
            return
        query["page"] += 1


def begin(mine, proxy):
    try:
        open_session(mine, proxy)
        mine["status"] = "ready"
    except Exception as error:  # Whose fault it was decides what counts against the proxy.
        mine.update(status="disconnected", error_message=str(error), blame="proxy")


def scrape(mine, id, filters):
    job, ads, end = JOBS[id], [], {}
    try:
        for number, (found, of) in enumerate(pages(mine, filters), 1):
            ads += found
            with LOCK:
                if job["status"] == "cancelled":
                    return
                job.update(status="running", ads_count=len(ads), progress_pct=number * 100 // max(of, 1))
        path = RESULTS / id / f"{id}_results.json"
        path.parent.mkdir(parents=True)
        path.with_suffix(".part").write_text(json.dumps({"ads": ads}))
        path.with_suffix(".part").rename(path)
        end = {"status": "completed" if ads else "empty"}
    except Exception as error:
        end = {"status": "failed", "error_message": str(error), "blame": "proxy"}
    finally:
        with LOCK:
            if job["status"] != "cancelled":  # It may be, after the last page.
                job.update(end)
            mine.update(job=None, status="ready" if mine["status"] == "scraping" else mine["status"])


class Worker(BaseHTTPRequestHandler):
    def answer(self, status, body):
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def handle_one(self, method):
        path, key = self.path.split("?")[0], self.headers.get("x-api-key", "")
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if path == "/health":
            return self.answer(200, {"status": "healthy"})
        if path.endswith("_results.json"):  # For the writer, who has no key: the id is the secret.
            id = Path(path).name.removesuffix("_results.json")
            file = RESULTS / id / f"{id}_results.json"
            known = id in JOBS and file.exists()
            return self.answer(200, json.loads(file.read_text())) if known else self.answer(404, {"error": "not_found"})
        if not hmac.compare_digest(key.encode(), KEY.encode()):
            return self.answer(401, {"error": "unauthorized", "message": "the API key is wrong"})
        with LOCK:
            self.answer(*self.route(method, path, json.loads(body or b"{}")))

    def route(self, method, path, body):
        global session
        none = 404, {"error": "not_found", "message": "there is none"}
        match method, path.strip("/").split("/"):
            case "POST", ["session"]:
                if session is None or body.get("force_refresh"):
                    self.cancel()
                    session = {"status": "connecting", "browser": None, "job": None}
                    threading.Thread(target=begin, args=(session, body["proxy"]), daemon=True).start()
                return 200, {"status": session["status"]}
            case "GET", ["session", "status"]:
                shown = ("status", "error_message", "blame")
                return (200, {name: session[name] for name in shown if name in session}) if session else none
            case "DELETE", ["session"]:
                if session is None:
                    return none
                self.cancel()
                session = None
                return 200, {}
            case "POST", ["scrape"]:
                key = self.headers.get("Idempotency-Key")
                if key in KEYS:
                    return 200, {"job_id": KEYS[key]}
                if session is None or session["status"] != "ready":
                    return 422, {"error": "not_ready", "message": "there is no session that is ready"}
                id = f"scrape_{uuid.uuid4().hex}"
                JOBS[id] = {"status": "queued", "ads_count": 0}
                if key:
                    KEYS[key] = id
                session.update(status="scraping", job=id)
                threading.Thread(target=scrape, args=(session, id, body["filters"]), daemon=True).start()
                return 200, {"job_id": id}
            case "GET", ["scrape", id]:
                return (200, JOBS[id]) if id in JOBS else none
            case "POST", ["scrape", id, "cancel"]:
                if id not in JOBS:
                    return none
                if JOBS[id]["status"] in ("queued", "running"):
                    JOBS[id]["status"] = "cancelled"
                return 200, {}
        return none

    def cancel(self):
        """A job ends with its session."""
        if session and session["job"]:
            JOBS[session["job"]]["status"] = "cancelled"

    do_GET = lambda self: self.handle_one("GET")
    do_POST = lambda self: self.handle_one("POST")
    do_DELETE = lambda self: self.handle_one("DELETE")
    log_message = lambda self, *_: None


if __name__ == "__main__":
    SOURCE = sys.argv[1].rstrip("/")
    PORT = int(sys.argv[2]) if len(sys.argv) > 2 else 8200
    server = ThreadingHTTPServer(("127.0.0.1", PORT), Worker)
    print(f"a worker at http://127.0.0.1:{PORT}", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass
