"""A server on this machine that speaks the OpenAI interface, well or as badly as a test wants it to."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

# A behaviour gets the request; what it does with it is its own affair.
Behaviour = Callable[["Request"], None]


class Request:
    """One request, and the means to answer it."""

    def __init__(self, handler: BaseHTTPRequestHandler, body: dict[str, Any], number: int) -> None:
        self.handler, self.body, self.number = handler, body, number
        self.path = handler.path
        self.headers = {name.lower(): value for name, value in handler.headers.items()}
        self.chat = "messages" in body

    def answer(self, status: int, body: str | bytes, kind: str = "application/json", **headers: str) -> None:
        """Send a whole response."""
        raw = body.encode() if isinstance(body, str) else body
        self.handler.send_response(status)
        self.handler.send_header("Content-Type", kind)
        self.handler.send_header("Content-Length", str(len(raw)))
        for name, value in headers.items():
            self.handler.send_header(name.replace("_", "-"), value)
        self.handler.end_headers()
        self.handler.wfile.write(raw)

    def refuse(self, status: int, message: str, **more: Any) -> None:
        """Send an error as such servers do."""
        self.answer(status, json.dumps({"error": {"message": message, **more}}))

    def begin_stream(self) -> None:
        """Send the head of a stream of events; it ends when the connection is closed."""
        self.handler.send_response(200)
        self.handler.send_header("Content-Type", "text/event-stream")
        self.handler.send_header("Connection", "close")
        self.handler.end_headers()
        self.handler.close_connection = True

    def send(self, event: Any) -> None:
        """Send one event of a stream."""
        data = event if isinstance(event, str) else json.dumps(event)
        self.handler.wfile.write(f"data: {data}\n\n".encode())
        self.handler.wfile.flush()

    def piece(self, text: str | None, finish: str | None = None, index: int = 0, **more: Any) -> dict[str, Any]:
        """One event that carries a piece of text."""
        holder = {"delta": {"content": text}} if self.chat else {"text": text or ""}
        return {"choices": [{"index": index, "finish_reason": finish, **holder, **more}]}

    def whole(self, *texts: str, finish: str = "stop", **more: Any) -> dict[str, Any]:
        """A whole answer with some choices."""
        choices = []
        for index, text in enumerate(texts):
            holder = {"message": {"content": text}} if self.chat else {"text": text}
            choices.append({"index": index, "finish_reason": finish, **holder})
        return {"choices": choices, **more}

    def stream(self, *pieces: str, finish: str | None = "stop", tokens: int | None = None) -> None:
        """Send a proper stream; without `finish` it is half a response."""
        self.begin_stream()
        for text in pieces:
            self.send(self.piece(text))
        if finish is not None:
            self.send(self.piece(None, finish))
            if tokens is not None:
                self.send({"choices": [], "usage": {"completion_tokens": tokens}})
            self.send("[DONE]")


def polite(request: Request) -> None:
    """Answer with a text that follows the seed, in three pieces."""
    request.stream("one ", f"two {request.body.get('seed')} ", "three", tokens=3)


class Server:
    """What the server was asked, and what it does; `behaviours` are used up one a request, the last one stays."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.behaviours: list[Behaviour] = [polite]
        self.models: dict[str, Any] | None = None
        self.url = ""
        self.gone = threading.Event()
        self.at_once = self.most_at_once = 0
        self.lock = threading.Lock()

    def does(self, *behaviours: Behaviour) -> None:
        """Set what it does from now on."""
        self.behaviours = list(behaviours)

    def next(self) -> Behaviour:
        with self.lock:
            return self.behaviours.pop(0) if len(self.behaviours) > 1 else self.behaviours[0]

    def hang(self, request: Request) -> None:
        """Never answer."""
        self.gone.wait(30)

    def stall(self, request: Request) -> None:
        """Begin to answer, and then fall silent."""
        request.begin_stream()
        request.send(request.piece("it begins "))
        self.gone.wait(30)

    def drip(self, request: Request) -> None:
        """Send a piece now and then, without end."""
        request.begin_stream()
        while not self.gone.is_set():
            request.send(request.piece("drop "))
            time.sleep(0.02)


@contextmanager
def serving() -> Iterator[Server]:
    """A server on a free port of this machine."""
    state = Server()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *args: Any) -> None:
            pass

        def do_GET(self) -> None:
            request = Request(self, {}, 0)
            if state.models is None:
                request.refuse(404, "not here")
            else:
                request.answer(200, json.dumps(state.models))

        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            with state.lock:
                request = Request(self, json.loads(raw), len(state.requests))
                state.requests.append(request)
                state.at_once += 1
                state.most_at_once = max(state.most_at_once, state.at_once)
            try:
                state.next()(request)
            except (ConnectionError, ValueError):
                self.close_connection = True
            finally:
                with state.lock:
                    state.at_once -= 1

    class Quiet(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 64

        def handle_error(self, request: Any, client_address: Any) -> None:
            pass

    server = Quiet(("127.0.0.1", 0), Handler)
    state.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield state
    finally:
        state.gone.set()
        server.shutdown()
        server.server_close()
        thread.join()
