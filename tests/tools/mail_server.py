"""A mail server that accepts, rejects, delays or drops messages, by the recipient's local part; it prints accepted messages.

Usage: mail_server.py off|starttls|implicit [CERTIFICATE KEY] [USER PASSWORD]

  refused   550 5.1.1         grey   451 once, then accepted    hang   never replies
  denied    554 5.7.1         slow   accepted after a second    drop   accepted, but disconnects before the reply, once
  spam      554 after the message
"""

import asyncio
import email
import email.policy
import json
import ssl
import sys

from aiosmtpd.smtp import SMTP, AuthResult


class Handler:
    """Chooses the behaviour by the recipient's local part."""

    def __init__(self) -> None:
        self.seen: set[str] = set()

    def is_first(self, name: str) -> bool:
        """Returns True for the first call with a name."""
        is_first = name not in self.seen
        self.seen.add(name)
        return is_first

    async def handle_MAIL(self, server, session, envelope, address, options):
        """Accepts every sender but one."""
        if address.startswith("banned@"):
            return "550 5.1.8 Sender refused"
        envelope.mail_from = address
        return "250 OK"

    async def handle_RCPT(self, server, session, envelope, address, options):
        """Accepts or rejects a recipient."""
        name = address.split("@")[0]
        if name == "refused":
            return "550 5.1.1 No such user"
        if name == "denied":
            return "554 5.7.1 Relay access denied"
        if name == "hang":
            await asyncio.sleep(3600)
        if name == "grey" and self.is_first(name):
            return "451 4.7.1 Come back later"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server, session, envelope):
        """Prints the message as parsed by Python's email package."""
        name = envelope.rcpt_tos[0].split("@")[0]
        if name == "spam":
            return "554 5.7.1 Message refused"
        message = email.message_from_bytes(envelope.content, policy=email.policy.default)
        parts = {part.get_content_type(): part.get_content() for part in message.iter_parts()}
        print(json.dumps({
            "to": envelope.rcpt_tos,
            "peer": session.peer[1],
            "tls": session.ssl is not None or server.transport.get_extra_info("cipher") is not None,
            "type": message.get_content_type(),
            "headers": {key: str(value) for key, value in message.items()},
            "count": len(message.keys()),
            "parts": list(parts.items()),
            "ascii": envelope.content.isascii(),
            "longest": max(map(len, envelope.content.split(b"\r\n"))),
            "unsubscribe": next(
                (line.decode() for line in envelope.content.split(b"\r\n") if line.startswith(b"List-Unsubscribe:")), None
            ),
        }), flush=True)
        if name == "slow":
            await asyncio.sleep(1)
        if name == "drop" and self.is_first(name):
            server.transport.abort()
            await asyncio.sleep(3600)
        return "250 2.0.0 Taken"


async def main(mode: str, *rest: str) -> None:
    """Listens on a free port of loopback."""
    context = None
    if mode != "off":
        certificate, key, *rest = rest
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)

    def authenticate(server, session, envelope, mechanism, data):
        is_known = [data.login.decode(), data.password.decode()] == list(rest)
        return AuthResult(success=is_known, handled=False) if not is_known else AuthResult(success=True)

    handler = Handler()

    def server() -> SMTP:
        starttls = context if mode == "starttls" else None
        return SMTP(
            handler,
            hostname="mail.test",
            loop=asyncio.get_running_loop(),
            tls_context=starttls,
            require_starttls=starttls is not None,
            authenticator=authenticate if rest else None,
            auth_required=bool(rest),
            auth_require_tls=False,
        )

    loop = asyncio.get_running_loop()
    listener = await loop.create_server(server, "127.0.0.1", 0, ssl=context if mode == "implicit" else None)
    print(f"listening on {listener.sockets[0].getsockname()[1]}", flush=True)
    await listener.serve_forever()


asyncio.run(main(*sys.argv[1:]))
