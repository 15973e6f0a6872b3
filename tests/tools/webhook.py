"""Checks the example of the API description's webhook as its receivers do: by hand, and by the standard's own library.

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
    """Signs the described body again, and holds both signatures against the described headers."""
    with open(path, encoding="utf-8") as file:
        document = json.load(file)
    webhook = document["webhooks"]["alert"]["post"]
    sent = {parameter["name"]: parameter["example"] for parameter in webhook["parameters"]}
    secret = re.search(r"whsec_[A-Za-z0-9+/=]+`, this body", webhook["description"]).group().split("`")[0]
    described = webhook["requestBody"]["content"]["application/json"]["examples"][sent["X-Service-Event"]]["value"]
    body = json.dumps(described, separators=(",", ":"), ensure_ascii=False)
    own = hmac.new(secret.encode(), body.encode(), hashlib.sha256).hexdigest()
    assert sent["X-Service-Signature"] == f"sha256={own}", sent
    at = datetime.datetime.fromtimestamp(int(sent["webhook-timestamp"]), tz=datetime.timezone.utc)
    standard = Webhook(secret).sign(sent["webhook-id"], at, body)
    assert sent["webhook-signature"] == standard, (sent, standard)
    print("both signatures hold")


main(*sys.argv[1:])
