"""WebSockets over one connection of HTTP/2 (RFC 8441), with a packaged implementation, for clients that know sockets.

    python3 h2_sockets.py PORT tls|plain PATH FIELDS WINDOW FD...

Each FD is a socket of its own stream: the first bytes read there are the answer's head in the form of HTTP/1.1, and
then bytes go both ways. Its end is END_STREAM; a reset closes it. FIELDS is a JSON list of pairs. What is not read
from an FD opens no window, of which each has WINDOW bytes at first."""
import json
import selectors
import socket
import ssl
import sys

import h2.config
import h2.connection
import h2.events
import h2.settings


class Stream:
    def __init__(self, number, fd):
        self.id = number
        self.socket = socket.socket(fileno=fd)
        self.socket.setblocking(False)
        self.inward = b""  # of the server, not written to the socket
        self.unread = 0  # of these, bytes that are to be acknowledged
        self.outward = b""  # of the socket, not sent
        self.finished = False  # the socket has no more
        self.ended = False  # the server has no more
        self.shut = False


class Client:
    def __init__(self, port, tls, window):
        raw = socket.create_connection(("127.0.0.1", port))
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if tls:
            context = ssl.create_default_context()
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
            context.set_alpn_protocols(["h2"])
            raw = context.wrap_socket(raw, server_hostname="localhost")
        raw.setblocking(False)
        self.raw = raw
        self.h2 = h2.connection.H2Connection(config=h2.config.H2Configuration(client_side=True, header_encoding="utf-8"))
        self.h2.initiate_connection()
        self.h2.update_settings({h2.settings.SettingCodes.INITIAL_WINDOW_SIZE: window})
        self.h2.increment_flow_control_window(1 << 24)  # a stream that is not read does not close the connection's
        self.unsent = b""
        self.received = b""
        self.offers = False
        self.streams = {}
        self.over = False

    def open(self, path, authority, scheme, fields, fds):
        for fd in fds:
            stream = Stream(self.h2.get_next_available_stream_id(), fd)
            self.streams[stream.id] = stream
            head = [(":method", "CONNECT"), (":protocol", "websocket"), (":scheme", scheme), (":path", path),
                    (":authority", authority)]
            self.h2.send_headers(stream.id, head + fields)

    def read(self):
        while True:
            try:
                data = self.raw.recv(65536)
            except (ssl.SSLWantReadError, BlockingIOError):
                return
            except OSError:
                data = b""
            if not data:
                self.over = True
                return
            self.received += data
            while len(self.received) >= 9 and len(self.received) >= 9 + int.from_bytes(self.received[:3], "big"):
                length = 9 + int.from_bytes(self.received[:3], "big")
                self.take_frame(self.received[:length])
                self.received = self.received[length:]

    # The package takes a GOAWAY for the end of all streams; RFC 9113 6.8 has those that are open go on.
    def take_frame(self, frame):
        for event in self.h2.receive_data(frame):
            self.take(event)
        if self.h2.state_machine.state == h2.connection.ConnectionState.CLOSED:
            self.h2.state_machine.state = h2.connection.ConnectionState.CLIENT_OPEN

    def take(self, event):
        if isinstance(event, h2.events.RemoteSettingsChanged):
            change = event.changed_settings.get(h2.settings.SettingCodes.ENABLE_CONNECT_PROTOCOL)
            self.offers = self.offers or (change is not None and change.new_value == 1)
        stream = self.streams.get(getattr(event, "stream_id", None))
        if stream is None:
            return
        if isinstance(event, h2.events.ResponseReceived):
            fields = dict(event.headers)
            lines = [f"HTTP/2.0 {fields.pop(':status')} x"] + [f"{name}: {value}" for name, value in fields.items()]
            stream.inward += ("\r\n".join(lines) + "\r\n\r\n").encode()
        elif isinstance(event, h2.events.DataReceived):
            stream.inward += event.data
            stream.unread += event.flow_controlled_length
        elif isinstance(event, h2.events.StreamEnded):
            stream.ended = True
        elif isinstance(event, h2.events.StreamReset):
            self.drop(stream)

    def drop(self, stream):
        stream.socket.close()
        self.streams.pop(stream.id, None)

    def write(self, stream):
        try:
            while stream.inward:
                stream.inward = stream.inward[stream.socket.send(stream.inward):]
        except BlockingIOError:
            return
        except OSError:
            stream.inward = b""
        if stream.unread:
            self.h2.acknowledge_received_data(stream.unread, stream.id)
            stream.unread = 0
        if stream.ended and not stream.shut:
            stream.shut = True
            try:
                stream.socket.shutdown(socket.SHUT_WR)
            except OSError:
                pass

    def hear(self, stream):
        while not stream.finished and len(stream.outward) < 65536:
            try:
                data = stream.socket.recv(65536)
            except BlockingIOError:
                break
            except OSError:
                data = b""
            stream.outward += data
            if not data:
                stream.finished = True
                stream.inward = b"" if stream.ended else stream.inward
        while stream.outward:
            room = min(self.h2.local_flow_control_window(stream.id), self.h2.max_outbound_frame_size)
            if room <= 0:
                return
            self.h2.send_data(stream.id, stream.outward[:room])
            stream.outward = stream.outward[room:]
        if stream.finished:
            self.h2.end_stream(stream.id)
            self.streams.pop(stream.id)

    def turn(self):
        for stream in list(self.streams.values()):
            self.write(stream)
            if stream.id in self.streams:
                self.hear(stream)
        self.unsent += self.h2.data_to_send()
        try:
            while self.unsent:
                self.unsent = self.unsent[self.raw.send(self.unsent):]
        except (ssl.SSLWantWriteError, BlockingIOError):
            pass
        except OSError:
            self.over = True

    def wait(self):
        chosen = selectors.DefaultSelector()
        chosen.register(self.raw, selectors.EVENT_READ | (selectors.EVENT_WRITE if self.unsent else 0))
        for stream in self.streams.values():
            wants = (0 if stream.finished or len(stream.outward) >= 65536 else selectors.EVENT_READ)
            wants |= selectors.EVENT_WRITE if stream.inward else 0
            if wants:
                chosen.register(stream.socket, wants)
        chosen.select(60)
        chosen.close()


def main():
    port, kind, path, fields, window = sys.argv[1:6]
    fds = [int(fd) for fd in sys.argv[6:]]
    fields = [(name.lower(), value) for name, value in json.loads(fields)]
    authority = dict(fields).get("host", f"localhost:{port}")
    fields = [field for field in fields if field[0] != "host"]
    client = Client(int(port), kind == "tls", int(window))
    while not client.offers and not client.over:
        client.turn()
        client.wait()
        client.read()
    client.open(path, authority, "https" if kind == "tls" else "http", fields, fds)
    while client.streams and not client.over:
        client.turn()
        client.wait()
        client.read()
    client.turn()


main()
