"""The way to the server: TLS with certificates of an authority of this run, and where a password comes from."""

from __future__ import annotations

import contextlib
import datetime
import ipaddress
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from nudge.core.errors import RemoteError
from tests.harness import eventually
from tests.person import Person
from tests.team.machines import REPO, Member, wait_until_same
from tests.team.postgres import Postgres
from tests.team.together import team

PASSWORD = "correct-horse-9-battery"
_SSL_REQUEST = bytes.fromhex("0000000804d2162f")
_ELSEWHERE = "127.1"
"""Leads to this machine, but is no name of it that is trusted without TLS."""


class Authority:
    """Signs certificates; its own is `file`."""

    def __init__(self, file: Path) -> None:
        self.file, self._key = file, ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"authority {file.name}")])
        own = self._certificate(self._name, self._key.public_key(), [])
        file.write_bytes(own.public_bytes(serialization.Encoding.PEM))

    def issue(self, *hosts: str) -> tuple[bytes, bytes]:
        """A certificate for these hosts and its key, as PEM."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, hosts[0])])
        certificate = self._certificate(subject, key.public_key(), [_general_name(host) for host in hosts])
        return certificate.public_bytes(serialization.Encoding.PEM), key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )

    def _certificate(
        self, subject: x509.Name, key: ec.EllipticCurvePublicKey, hosts: list[x509.GeneralName]
    ) -> x509.Certificate:
        now = datetime.datetime.now(datetime.UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(days=1))
            .not_valid_after(now + datetime.timedelta(days=1))
            .add_extension(x509.BasicConstraints(ca=not hosts, path_length=None), critical=True)
        )
        if hosts:
            builder = builder.add_extension(x509.SubjectAlternativeName(hosts), critical=False)
        return builder.sign(self._key, hashes.SHA256())


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


@contextlib.contextmanager
def _served(postgres: Postgres, hba: str, *options: str) -> Iterator[None]:
    """Let the server run with other rules of who may log in how, and options."""
    file = postgres.write("pg_hba_test.conf", f"host all {postgres.superuser} 127.0.0.1/32 trust\n{hba}\n")
    postgres.stop()
    try:
        postgres.start("-c", f"hba_file={file}", *options)
        yield
    finally:
        postgres.stop()
        postgres.start()


def _refusal(member: Member, url: str) -> str:
    with pytest.raises(RemoteError) as refused:
        member.call("nudge.team_join", url=url)
    return str(refused.value)


def tls(postgres: Postgres) -> str:
    """A certificate is checked as sslmode says, and a server without TLS is sent nothing."""
    if not postgres.has_tls:
        return f"NOT TESTED: the PostgreSQL in {postgres.binaries} is built without TLS"
    folder = postgres.base
    ours, others = Authority(folder / "ours.pem"), Authority(folder / "others.pem")
    certificate, key = ours.issue("localhost")
    files = [postgres.write(name, data.decode()) for name, data in (("server.pem", certificate), ("server.key", key))]
    options = ("ssl=on", f"ssl_cert_file={files[0]}", f"ssl_key_file={files[1]}")
    named = [part for option in options for part in ("-c", option)]

    def url(host: str, mode: str, root: Path | None = ours.file) -> str:
        place = f"postgresql://alice@{host}:{postgres.port}/team?sslmode={mode}"
        return place if root is None else f"{place}&sslrootcert={root}"

    with team("alice", "bob") as (alice, bob):
        with _served(postgres, "hostssl all all 127.0.0.1/32 trust", *named):
            refused = {
                "a name that the certificate does not have": url(_ELSEWHERE, "verify-full"),
                "another authority": url("localhost", "verify-full", others.file),
                "another authority, without the name": url("localhost", "verify-ca", others.file),
                "no authority of the system": url(_ELSEWHERE, "verify-ca", None),
            }
            for what, address in refused.items():
                refusal = _refusal(alice, address)
                assert "TLS with the server failed" in refusal, (what, refusal)
            for address in (url(_ELSEWHERE, "verify-ca"), url(_ELSEWHERE, "require", None)):
                alice.call("nudge.team_join", url=address)
            alice.join(url("localhost", "verify-full"))
            bob.join(url("localhost", "verify-full").replace("alice", "bob"))
            alice.note("Over TLS", "words")
            wait_until_same([alice, bob])
            in_use = "SELECT DISTINCT s.version FROM pg_stat_ssl s JOIN pg_stat_activity a USING (pid)"
            versions = postgres.rows(f"{in_use} WHERE a.usename = 'alice' AND s.ssl")
            checks = {row["check"]: row for row in alice.call("nudge.team_doctor")["checks"]}
            assert checks["the connection is encrypted"]["detail"] == "TLS"
        assert "offers no TLS" in _refusal(alice, url(_ELSEWHERE, "require", None))
        assert "TLS is required" in _refusal(alice, url(_ELSEWHERE, "disable", None))
        with _refusing_tls() as (port, received):
            assert "offers no TLS" in _refusal(alice, f"postgresql://alice:{PASSWORD}@{_ELSEWHERE}:{port}/team")
        assert bytes(received) == _SSL_REQUEST, bytes(received)
    return f"{versions[0][0]}; {len(refused)} certificates refused; without TLS nothing is sent but the question for it"


@contextlib.contextmanager
def _refusing_tls() -> Iterator[tuple[int, bytearray]]:
    """A server that has no TLS, and what it is sent."""
    received = bytearray()

    def serve(listening: socket.socket) -> None:
        with contextlib.suppress(OSError):
            connection, _ = listening.accept()
            with connection:
                received.extend(connection.recv(8))
                connection.sendall(b"N")
                while piece := connection.recv(65_536):
                    received.extend(piece)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=serve, args=(listening,), daemon=True)
        thread.start()
        yield listening.getsockname()[1], received
        thread.join(10)


def passwords(postgres: Postgres) -> str:
    """From the environment, a prompt, the URL and ~/.pgpass; wherever it comes from, no file of the machine and no
    output has it."""
    postgres.psql(f"SET password_encryption = 'scram-sha-256'; ALTER ROLE alice PASSWORD '{PASSWORD}'")
    address = postgres.url("alice")
    with _served(postgres, "host all all 127.0.0.1/32 scram-sha-256"), team("alice") as (alice,):
        shown = [_join_without(alice, address)]
        joined = alice.cli("team", "join", address, PGPASSWORD=PASSWORD)
        assert joined.returncode == 0, joined.stderr
        shown += [joined.stdout, joined.stderr, _works(alice, "environment")]
        _restart_without(alice)
        with Person(alice, "team", "join", address, "--ask-password", cwd=str(alice.base)) as person:
            shown.append(person.sees("password: "))
            person.types(f"{PASSWORD}\n")
            code, screen = person.ends()
        assert code == 0, screen
        shown += [screen, _works(alice, "prompt")]
        _restart_without(alice)
        joined = alice.cli("team", "join", address.replace("alice@", f"alice:{PASSWORD}@"))
        assert joined.returncode == 0 and "shell's history" in joined.stderr, joined.stderr
        shown += [joined.stdout, joined.stderr, _works(alice, "address")]
        _restart_without(alice)
        wrong = alice.cli("team", "join", address, PGPASSWORD=f"{PASSWORD}-wrong")
        assert wrong.returncode != 0 and "refuses the login" in wrong.stderr, wrong.stderr
        shown += [wrong.stdout, wrong.stderr]
        assert not _holders(alice) and not [text for text in shown if PASSWORD in text], (_holders(alice), shown)
        pgpass = alice.home / ".pgpass"
        pgpass.write_text(f"127.0.0.1:{postgres.port}:team:alice:{PASSWORD}\n")
        pgpass.chmod(0o600)
        alice.stop()
        alice.start()
        shown.append(_works(alice, ".pgpass, after a restart"))
        assert _holders(alice) == [pgpass] and PASSWORD not in shown[-1]
    return "from the environment, a prompt, the address and ~/.pgpass; in no file of ours and no output"


def _join_without(member: Member, address: str) -> str:
    """Without a password the server is not entered; a prompt needs a terminal."""
    refused = member.cli("team", "join", address)
    assert refused.returncode != 0, refused.stdout
    asked = member.cli("team", "join", address, "--ask-password")
    assert asked.returncode != 0 and "not a terminal" in asked.stderr, asked.stderr
    return refused.stderr + asked.stderr


def _works(member: Member, what: str) -> str:
    """One change is sent; what the commands print meanwhile."""
    done = member.cli("team", "share", REPO)
    assert done.returncode == 0, done.stderr
    member.note(f"From: {what}", "words")
    eventually(lambda: member.is_up_to_date() and member.status()["problem"] is None, what)
    status, doctor = member.cli("team", "status"), member.cli("team", "doctor")
    assert doctor.returncode == 0, doctor.stdout + doctor.stderr
    return "".join((done.stdout, done.stderr, status.stdout, status.stderr, doctor.stdout, doctor.stderr))


def _restart_without(member: Member) -> None:
    """The password was in memory only: the next server does not have it, and says so."""
    member.stop()
    member.start()
    eventually(lambda: member.status()["problem"], "the server has no password")


def _holders(member: Member) -> list[Path]:
    """The files of a machine that have the password in them."""
    files = (path for path in member.base.rglob("*") if path.is_file() and not path.is_symlink())
    return [path for path in files if PASSWORD.encode() in path.read_bytes()]
