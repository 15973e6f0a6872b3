"""Verifies deliveries as receivers do: both signatures over the raw bytes, manually and with the Standard Webhooks library.

Usage: deliveries.py FILE SECRET

Each line of the file is a JSON object with the request's `headers` (names in lower case) and its `body` in hex.
"""

import hashlib
import hmac
import json
import sys

from standardwebhooks.webhooks import Webhook


def main(path: str, secret: str) -> None:
    """Verifies the signatures of every line."""
    library, count = Webhook(secret), 0
    with open(path, encoding="utf-8") as file:
        for line in file:
            request = json.loads(line)
            headers, body = request["headers"], bytes.fromhex(request["body"])
            own = "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
            assert hmac.compare_digest(headers["x-service-signature"], own), headers
            assert headers["webhook-id"] == headers["x-service-delivery"], headers
            library.verify(body, headers)
            count += 1
    print(f"{count} deliveries are signed")


main(*sys.argv[1:])
