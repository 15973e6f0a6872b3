<?php

// Checks X-Service-Signature. $body is the raw body: file_get_contents('php://input').
function verify(string $secret, string $body, string $signature): bool
{
    return hash_equals('sha256=' . hash_hmac('sha256', $body, $secret), $signature);
}

// Checks webhook-signature, and that the request is at most five minutes old.
function verify_standard(string $secret, string $body, array $headers, ?int $now = null): bool
{
    $id = $headers['webhook-id'] ?? '';
    $timestamp = $headers['webhook-timestamp'] ?? '';
    if (!ctype_digit($timestamp) || abs(($now ?? time()) - (int) $timestamp) > 300) {
        return false;
    }
    $key = base64_decode(substr($secret, strlen('whsec_')), true);
    if ($key === false) {
        return false;
    }
    $expected = 'v1,' . base64_encode(hash_hmac('sha256', "$id.$timestamp.$body", $key, true));
    foreach (explode(' ', $headers['webhook-signature'] ?? '') as $given) {
        if (hash_equals($expected, $given)) {
            return true;
        }
    }
    return false;
}
