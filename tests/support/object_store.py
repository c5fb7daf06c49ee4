"""An object store with the protocol of S3, in this process: moto's server."""

from __future__ import annotations

import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING

from moto.server import ThreadedMotoServer
from pyarrow import fs

from graphtide.spark.files import s3_options

if TYPE_CHECKING:
    from collections.abc import Iterator

BUCKET = "rail"
SECRET = "not-to-be-shown"


@contextmanager
def object_store() -> Iterator[dict[str, str]]:
    """A store with one bucket; what the environment of its clients needs."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    _, port = server.get_host_and_port()
    settings = {"fs.s3a.endpoint": f"http://127.0.0.1:{port}", "fs.s3a.endpoint.region": "eu-1"}
    settings |= {"fs.s3a.access.key": "test", "fs.s3a.secret.key": SECRET}
    fs.S3FileSystem(allow_bucket_creation=True, **s3_options(settings)).create_dir(BUCKET)
    try:
        yield {
            "AWS_ENDPOINT_URL": settings["fs.s3a.endpoint"],
            "AWS_REGION": "eu-1",
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": SECRET,
        }
    finally:
        server.stop()
