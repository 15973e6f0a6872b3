import base64
import hashlib
import hmac
import time


def verify(secret: str, body: bytes, signature: str) -> bool:
    """Checks X-Service-Signature. `body` is the raw body, before any JSON parser."""
    expected = "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    return hmac.compare_digest(expected.encode(), signature.encode())


def verify_standard(secret: str, body: bytes, headers: dict, now: float | None = None) -> bool:
    """Checks webhook-signature, and that the request is at most five minutes old."""
    message_id = headers.get("webhook-id", "")
    timestamp = headers.get("webhook-timestamp", "")
    now = time.time() if now is None else now
    if not timestamp.isdecimal() or abs(now - int(timestamp)) > 300:
        return False
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signed = f"{message_id}.{timestamp}.".encode() + body
    expected = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest())
    given = headers.get("webhook-signature", "").split()
    return any(hmac.compare_digest(b"v1," + expected, one.encode()) for one in given)
