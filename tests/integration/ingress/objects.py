"""A store of objects on loopback, as S3 answers. It refuses who has not signed with its key."""

import json
import socket
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final
from urllib.parse import urlsplit

import boto3
import httpx2
from moto.server import ThreadedMotoServer

REGION: Final = "eu-west-1"
BUCKET: Final = "archive"
MAY_ALL: Final = ("s3:*", "glue:*")
MAY_READ: Final = ("s3:Get*", "s3:List*", "glue:*")


class ObjectStore:
    def __init__(self, endpoint: str) -> None:
        self.endpoint = endpoint
        users = self._client("iam", "anybody", "anything")
        self.access_key, self.secret_key = _user(users, "waybill", MAY_ALL)
        self.reader_key, self.reader_secret_key = _user(users, "reader", MAY_READ)
        self.objects = self._client("s3", self.access_key, self.secret_key)
        self.objects.create_bucket(
            Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": REGION}
        )
        # from here on each request is checked
        httpx2.post(f"{endpoint}/moto-api/reset-auth", content="0").raise_for_status()

    def put(self, key: str, content: bytes, **more: str) -> None:
        self.objects.put_object(Bucket=BUCKET, Key=key, Body=content, **more)

    def keys(self) -> list[str]:
        found = self.objects.list_objects_v2(Bucket=BUCKET)
        return [each["Key"] for each in found.get("Contents", ())]

    def _client(self, service: str, access_key: str, secret_key: str) -> Any:  # noqa: ANN401
        return boto3.client(
            service,
            endpoint_url=self.endpoint,
            region_name=REGION,
            aws_access_key_id=access_key,
            aws_secret_access_key=secret_key,
        )


def _user(users: Any, name: str, may: tuple[str, ...]) -> tuple[str, str]:  # noqa: ANN401
    """Who may do so much, and its two keys."""
    users.create_user(UserName=name)
    statement = {"Effect": "Allow", "Action": may, "Resource": "*"}
    policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    users.put_user_policy(UserName=name, PolicyName="may", PolicyDocument=policy)
    made = users.create_access_key(UserName=name)["AccessKey"]
    return made["AccessKeyId"], made["SecretAccessKey"]


@contextmanager
def serving_objects() -> Iterator[ObjectStore]:
    server = ThreadedMotoServer("127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        endpoint = f"http://{host}:{port}"
        # its state is one for the whole process: whoever served before has left users and checks
        httpx2.post(f"{endpoint}/moto-api/reset-auth", content="inf").raise_for_status()
        httpx2.post(f"{endpoint}/moto-api/reset").raise_for_status()
        yield ObjectStore(endpoint)
    finally:
        server.stop()


@contextmanager
def cutting(endpoint: str, at: int) -> Iterator[tuple[str, list[bytes]]]:
    """Another address of a server, which ends the first answer behind so many bytes of it; and the
    heads of the requests."""
    server_at = urlsplit(endpoint)
    asked: list[bytes] = []

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            head = b""
            while b"\r\n\r\n" not in head:
                head += self.request.recv(65_536)
            asked.append(head)
            left = at if len(asked) == 1 else None
            address = (str(server_at.hostname), int(server_at.port or 0))
            with socket.create_connection(address, timeout=30) as server:
                server.sendall(head)
                while (left is None or left) and (piece := server.recv(left or 65_536)):
                    self.request.sendall(piece)
                    left = None if left is None else left - len(piece)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as proxy:
        thread = threading.Thread(target=proxy.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield f"http://127.0.0.1:{proxy.server_address[1]}", asked
        finally:
            proxy.shutdown()
            thread.join()
