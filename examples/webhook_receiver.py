"""A receiver of webhooks: checks who sent them, and acts once on each event.

    WAYBILL_WEBHOOK_SECRET=whsec_… python examples/webhook_receiver.py 9000
    waybill watch TOKEN --webhook http://127.0.0.1:9000/   # with the same secret

It needs `waybill-client` alone. A receiver of yours keeps the ids of events where its data is.
"""

import os
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from waybill import webhooks

BODY_BYTES_MAX = 1_000_000
SECRET = os.environ["WAYBILL_WEBHOOK_SECRET"]
SEEN: set[str] = set()


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        size = int(self.headers.get("content-length", 0))
        if size > BODY_BYTES_MAX:
            self._answer(413)
            return
        try:
            event = webhooks.verify(dict(self.headers), self.rfile.read(size), SECRET)
        except webhooks.NotFromWaybill as refused:
            print("refused:", refused, flush=True)
            self._answer(401)
            return
        if event.id not in SEEN:  # the same event may come again
            SEEN.add(event.id)
            print(event.type, event.subject, event.outcome, flush=True)
        self._answer(204)

    def _answer(self, status: int) -> None:
        self.send_response(status)
        self.end_headers()

    def log_message(self, *about: object) -> None:
        """Nothing but events."""


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Receiver)
    print(f"listening on http://127.0.0.1:{server.server_address[1]}/", flush=True)
    server.serve_forever()
