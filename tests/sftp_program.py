"""A server of SFTP that shows one directory as its root.

Usage: sftp_program.py PORT ROOT USER PASSWORD
"""

from __future__ import annotations

import asyncio
import sys

import asyncssh


class OneUser(asyncssh.SSHServer):
    """Lets in who knows the password."""

    def __init__(self, user: str, password: str) -> None:
        self._known = (user, password)

    def password_auth_supported(self) -> bool:
        """See ``SSHServer``."""
        return True

    def validate_password(self, username: str, password: str) -> bool:
        """See ``SSHServer``."""
        return (username, password) == self._known


async def serve(port: int, root: str, user: str, password: str) -> None:
    """Until the process is ended."""
    server = await asyncssh.listen(
        "127.0.0.1",
        port,
        server_factory=lambda: OneUser(user, password),
        server_host_keys=[asyncssh.generate_private_key("ssh-ed25519")],
        sftp_factory=lambda channel: asyncssh.SFTPServer(channel, chroot=root),
    )
    await server.wait_closed()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1]), *sys.argv[2:]))
