# A second opinion on frames of WebSocket: reads streams from standard input (a byte for the role, 1 for a client's,
# four bytes for the length, the bytes) and writes what wsproto makes of each: the code of its fault or 0, the same
# where 140 zeros follow, the number of a difference that is meant or 0, the events as websocket_told.h has them, the
# payload of a message that has not ended; lengths before both.
import struct
import sys

from wsproto.frame_protocol import FrameProtocol, Opcode, ParseFailed

SURROGATE, RESERVED = 1, 2  # differences that are meant
NAMES = {Opcode.PING: b"PING ", Opcode.PONG: b"PONG "}


def encoded(payload):
    return payload.encode() if isinstance(payload, str) else bytes(payload)


# Python's decoder keeps the first two bytes of a surrogate at the end of a frame, and refuses them with the next byte
# (unicodeobject.c, for the sake of "surrogatepass"): RFC 3629 4 has no character that begins with them.
def keeps_surrogate(protocol):
    decoder = protocol._message_decoder.decoder
    kept = decoder.getstate()[0] if decoder else b""
    return len(kept) == 2 and kept[0] == 0xED and kept[1] >= 0xA0


# The code of the fault that ends the frames at hand, or 0, and a difference or 0.
def read(protocol, data, events, message):
    try:
        protocol.receive_bytes(data)
        for frame in protocol.received_frames():
            if frame.opcode in NAMES:
                events += NAMES[frame.opcode] + bytes(frame.payload) + b"\n"
            elif frame.opcode is Opcode.CLOSE:
                code, reason = frame.payload
                events += b"CLOSE %d %s\n" % (int(code), reason.encode())
            else:
                message += encoded(frame.payload)
                if keeps_surrogate(protocol):
                    return 1007, SURROGATE
                if frame.message_finished:
                    events += (b"TEXT " if frame.opcode is Opcode.TEXT else b"BINARY ") + message + b"\n"
                    message.clear()
    except ParseFailed as fault:
        return int(fault.code), RESERVED if str(fault) == "CLOSE with unknown reserved code" else 0
    return 0, 0


while head := sys.stdin.buffer.read(5):
    client, length = struct.unpack("!BI", head)
    protocol = FrameProtocol(bool(client), [])
    events, message = bytearray(), bytearray()
    fault, meant = read(protocol, sys.stdin.buffer.read(length), events, message)
    told = bytes(events), bytes(message)
    later, _ = (fault, 0) if fault else read(protocol, bytes(140), bytearray(), bytearray())
    out = struct.pack("!HHHI", fault, later, meant, len(told[0])) + told[0] + struct.pack("!I", len(told[1])) + told[1]
    sys.stdout.buffer.write(out)
