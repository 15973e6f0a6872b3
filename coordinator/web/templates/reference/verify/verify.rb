require "openssl"

# Checks X-Service-Signature. `body` is the raw body: request.body.read (Rack), request.raw_post (Rails).
def verify(secret, body, signature)
  expected = "sha256=" + OpenSSL::HMAC.hexdigest("SHA256", secret, body)
  OpenSSL.secure_compare(expected, signature)
end

# Checks webhook-signature, and that the request is at most five minutes old.
def verify_standard(secret, body, headers, now = Time.now.to_i)
  id = headers.fetch("webhook-id", "")
  timestamp = headers.fetch("webhook-timestamp", "")
  return false unless timestamp.match?(/\A\d+\z/) && (now - timestamp.to_i).abs <= 300
  key = secret.delete_prefix("whsec_").unpack1("m")
  digest = OpenSSL::HMAC.digest("SHA256", key, "#{id}.#{timestamp}.#{body}")
  expected = "v1," + [digest].pack("m0")
  headers.fetch("webhook-signature", "").split.any? { |given| OpenSSL.secure_compare(expected, given) }
end
