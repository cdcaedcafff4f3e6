"""A model for the contract test: answers every request of the OpenAI protocol at once, with the same few words."""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

WORDS = ["Yes, ", "we ship ", "to Norway."]


def chunk(delta, finish_reason=None, usage=None):
    choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
    body = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "contract", "choices": [choice]}
    if usage:
        body["usage"] = usage
    return f"data: {json.dumps(body)}\n\n"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        self.rfile.read(int(self.headers.get("content-length", 0)))
        usage = {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12}
        chunks = [chunk({"content": word}) for word in WORDS] + [chunk({}, "stop", usage), "data: [DONE]\n\n"]
        body = "".join(chunks).encode()
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
