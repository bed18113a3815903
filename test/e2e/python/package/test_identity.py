"""Tokens and TLS, against a server of this process; CORA is a .npz file beside tls/."""

import concurrent.futures
import os
import pathlib
import tempfile
import unittest

import grpc

import gnnd
from gnnd import identity
from gnnd.v1 import host_service_pb2, host_service_pb2_grpc

TLS = pathlib.Path(os.environ["CORA"]).parent / "tls"
TOKEN = "of-the-test"


class Hosts(host_service_pb2_grpc.HostServiceServicer):
    """A daemon's host for who has the token."""

    def GetHost(self, request, context):  # noqa: N802
        given = dict(context.invocation_metadata()).get("authorization")
        if given != f"Bearer {TOKEN}":
            context.abort(grpc.StatusCode.UNAUTHENTICATED, "the token is unknown")
        return host_service_pb2.Host(version=gnnd.__version__, hostname="far")


class Servers(unittest.TestCase):
    def serve(self, with_client_certificates=False):
        """Its address."""
        pair = [(TLS / f"server.{end}").read_bytes() for end in ("key", "pem")]
        ca = (TLS / "ca.pem").read_bytes() if with_client_certificates else None
        credentials = grpc.ssl_server_credentials([tuple(pair)], ca, with_client_certificates)
        server = grpc.server(concurrent.futures.ThreadPoolExecutor(1))
        host_service_pb2_grpc.add_HostServiceServicer_to_server(Hosts(), server)
        port = server.add_secure_port("127.0.0.1:0", credentials)
        server.start()
        self.addCleanup(server.stop, None)
        return f"127.0.0.1:{port}"

    def test_with_tls_ask_for_a_token(self):
        address = self.serve()
        with gnnd.connect(address, ca=TLS / "ca.pem", token=TOKEN) as client:
            self.assertFalse(client.is_same_host)
        with self.assertRaisesRegex(gnnd.AccessDenied, "the token is unknown"):
            gnnd.connect(address, ca=TLS / "ca.pem", token="another")

    def test_with_tls_say_so_to_who_comes_without(self):
        address = self.serve()
        with self.assertRaisesRegex(gnnd.Unavailable, r"gnnd.connect\(ADDRESS, ca=FILE\)"):
            gnnd.connect(address, token=TOKEN)
        with self.assertRaises(gnnd.Unavailable):
            gnnd.connect(address, token=TOKEN, tls=True)

    def test_may_ask_for_a_certificate(self):
        address = self.serve(with_client_certificates=True)
        own = {"cert": TLS / "client.pem", "key": TLS / "client.key"}
        gnnd.connect(address, ca=TLS / "ca.pem", token=TOKEN, **own).close()
        with self.assertRaises(gnnd.Unavailable):
            gnnd.connect(address, ca=TLS / "ca.pem", token=TOKEN)


class Identities(unittest.TestCase):
    """As those of gnnctl: arguments first, then the environment."""

    def test_have_a_token(self):
        with tempfile.NamedTemporaryFile("w") as file:
            file.write("of-a-file\n")
            file.flush()
            environment = {"GNND_TOKEN_FILE": file.name}
            for given, also, expected in (
                (None, {}, "Bearer of-a-file"),
                (None, {"GNND_TOKEN": "of-env"}, "Bearer of-env"),
                ("given", {"GNND_TOKEN": "of-env"}, "Bearer given"),
            ):
                found = identity.Identity(token=given).metadata({**environment, **also})
                self.assertEqual(found, (("authorization", expected),))
        self.assertEqual(identity.Identity().metadata({}), ())
        with self.assertRaisesRegex(gnnd.GnndError, "expected a line of letters"):
            identity.Identity(token="two words").metadata({})
        with self.assertRaisesRegex(gnnd.GnndError, "GNND_TOKEN_FILE /nowhere: No such file"):
            identity.Identity().metadata({"GNND_TOKEN_FILE": "/nowhere"})

    def test_are_encrypted_over_tcp_where_asked_for(self):
        none = identity.Identity()
        self.assertIsNone(none.credentials("unix:/a", {"GNND_TLS_CA": "/nowhere"}))
        self.assertIsNone(none.credentials("host:1", {}))
        self.assertIsNotNone(identity.Identity(tls=True).credentials("host:1", {}))
        with self.assertRaisesRegex(gnnd.GnndError, "ca /nowhere: No such file"):
            none.credentials("host:1", {"GNND_TLS_CA": "/nowhere"})
        with self.assertRaisesRegex(gnnd.GnndError, "both or neither"):
            identity.Identity(cert="/a").credentials("host:1", {})


if __name__ == "__main__":
    unittest.main()
