"""Verifies the webhook example in the OpenAPI document as receivers do: manually and with the Standard Webhooks library.

Usage: webhook.py OPENAPI_JSON
"""

import datetime
import hashlib
import hmac
import json
import re
import sys

from standardwebhooks.webhooks import Webhook


def main(path: str) -> None:
    """Signs the documented body, and compares both signatures with the documented headers."""
    with open(path, encoding="utf-8") as file:
        document = json.load(file)
    webhook = document["webhooks"]["alert"]["post"]
    sent = {parameter["name"]: parameter["example"] for parameter in webhook["parameters"]}
    secret = re.search(r"with the secret `(whsec_[A-Za-z0-9+/=]+)`", webhook["description"]).group(1)
    described = webhook["requestBody"]["content"]["application/json"]["examples"][sent["X-Service-Event"]]["value"]
    body = json.dumps(described, separators=(",", ":"), ensure_ascii=False)
    own = hmac.new(secret.encode(), body.encode(), hashlib.sha256).hexdigest()
    assert sent["X-Service-Signature"] == f"sha256={own}", sent
    at = datetime.datetime.fromtimestamp(int(sent["webhook-timestamp"]), tz=datetime.timezone.utc)
    standard = Webhook(secret).sign(sent["webhook-id"], at, body)
    assert sent["webhook-signature"] == standard, (sent, standard)
    print("both signatures hold")


main(*sys.argv[1:])
