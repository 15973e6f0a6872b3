import { createHmac, timingSafeEqual } from "node:crypto";

const same = (one, other) => one.length === other.length && timingSafeEqual(one, other);

// Checks X-Service-Signature. `body` is the raw body (a Buffer), before any JSON parser.
export function verify(secret, body, signature) {
  const expected = "sha256=" + createHmac("sha256", secret).update(body).digest("hex");
  return same(Buffer.from(expected), Buffer.from(signature ?? ""));
}

// Checks webhook-signature, and that the request is at most five minutes old.
export function verifyStandard(secret, body, headers, now = Date.now() / 1000) {
  const id = headers["webhook-id"] ?? "";
  const timestamp = headers["webhook-timestamp"] ?? "";
  if (!/^\d+$/.test(timestamp) || Math.abs(now - Number(timestamp)) > 300) return false;
  const key = Buffer.from(secret.replace(/^whsec_/, ""), "base64");
  const expected = createHmac("sha256", key).update(`${id}.${timestamp}.`).update(body).digest("base64");
  const given = (headers["webhook-signature"] ?? "").split(" ");
  return given.some((one) => same(Buffer.from(`v1,${expected}`), Buffer.from(one)));
}
