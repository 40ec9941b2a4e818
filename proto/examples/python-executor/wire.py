"""The bytes of Carillon's executor protocol: protobuf, frames and yamux.

Each part names the section of proto/SPEC.md that it follows. Messages are
plain dicts; their fields are read from carillon.proto when this is imported.
"""
import asyncio
import pathlib
import re
import struct
import time

PREFACE = b"CARILLON\x00\x01"
MAX_HELLO, MAX_FRAME = 4096, 1 << 20
WRITE_TIMEOUT = KEEP_ALIVE = 5  # seconds


class Malformed(Exception):
    """The peer broke the protocol: the connection has to end."""


# ---- protobuf (SPEC 1.1) ----

MESSAGES, ENUMS = {}, {}  # name -> [(number, repeated, type, field)]; name -> {word: number}


def load(proto_file):
    text = re.sub(r"//.*", "", proto_file.read_text())
    for kind, name, body in re.findall(r"(message|enum) (\w+) \{((?:[^{}]|\{[^{}]*\})*)\}", text):
        if kind == "enum":
            ENUMS[name] = {word: int(number) for word, number in re.findall(r"(\w+) = (\d+);", body)}
            continue
        MESSAGES[name] = []
        for repeated, type_, field, number in re.findall(r"(repeated )?(map<string, string>|\w+) (\w+) = (\d+);", body):
            if type_.startswith("map<"):  # on the wire a repeated message of key and value
                repeated, type_ = True, "MapEntry"
            MESSAGES[name].append((int(number), bool(repeated), type_, field))
    MESSAGES["MapEntry"] = [(1, False, "string", "key"), (2, False, "string", "value")]


load(pathlib.Path(__file__).resolve().parents[2] / "carillon.proto")


def word(enum, number):
    """An enum's word. A number that is not known counts as …_UNSPECIFIED."""
    words = {n: w for w, n in ENUMS[enum].items()}
    return words.get(number, words[0])


def varint(number):
    number &= (1 << 64) - 1  # a negative number is sent as its 64-bit two's complement
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes(out) + bytes([number])


def encode(name, values):
    out = b""
    for number, repeated, type_, field in MESSAGES[name]:
        value = values.get(field)
        for item in [] if value is None else value if repeated else [value]:
            if type_ in MESSAGES:
                item = encode(type_, item)
            elif type_ == "string":
                item = item.encode("utf-8", "replace")
            if isinstance(item, bytes):
                out += varint(number << 3 | 2) + varint(len(item)) + item
            else:
                out += varint(number << 3) + varint(ENUMS[type_][item] if type_ in ENUMS else int(item))
    return out


def decode(name, data):
    """Returns the message as a dict. A field that was not sent has its default; a message not sent is absent."""
    fields, values = {}, {}
    for number, repeated, type_, field in MESSAGES[name]:
        fields[number] = repeated, type_, field
        if repeated or type_ not in MESSAGES:
            unset = {"string": "", "bytes": b""}.get(type_, 0)
            values[field] = [] if repeated else word(type_, 0) if type_ in ENUMS else unset
    at = 0

    def number_at():
        nonlocal at
        value = shift = 0
        while True:
            byte, at = data[at], at + 1
            value, shift = value | (byte & 0x7F) << shift, shift + 7
            if byte < 0x80:
                return value & (1 << 64) - 1

    try:
        while at < len(data):
            tag = number_at()
            if tag & 7 == 0:
                value = number_at()
            else:
                size = {1: 8, 5: 4}[tag & 7] if tag & 7 != 2 else number_at()
                value, at = data[at:at + size], at + size
            repeated, type_, field = fields.get(tag >> 3, (False, "", ""))
            if type_ in MESSAGES:
                value = decode(type_, value)
            elif type_ == "string":
                value = value.decode()
            elif type_ in ENUMS:
                value = word(type_, value)
            elif type_.startswith("int"):
                value -= (value >> 63) << 64
            if repeated:
                values[field].append(value)
            elif field:
                values[field] = value
    except (IndexError, KeyError, TypeError, AttributeError, UnicodeDecodeError) as broken:
        raise Malformed(f"no {name}: {broken!r}") from broken
    if at > len(data):
        raise Malformed(f"{name} ends early")
    return values


# ---- frames (SPEC 1) ----

CRC_TABLE = []
for entry in range(256):
    for _ in range(8):
        entry = entry >> 1 ^ (0x82F63B78 if entry & 1 else 0)
    CRC_TABLE.append(entry)


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = CRC_TABLE[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def frame(name, values):
    payload = encode(name, values)
    return struct.pack(">II", len(payload), crc32c(payload)) + payload


async def read_frame(reader, name, limit=MAX_FRAME):
    length, checksum = struct.unpack(">II", await reader.readexactly(8))
    if length > limit:
        raise Malformed(f"frame of {length} bytes")
    payload = await reader.readexactly(length)
    if crc32c(payload) != checksum:
        raise Malformed("wrong checksum")
    return decode(name, payload)


# ---- yamux, client side, two streams (SPEC 3.1) ----

DATA, WINDOW, PING, GO_AWAY = range(4)
SYN, ACK, FIN, RST = 1, 2, 4, 8


class Stream:
    def __init__(self, first_byte):
        self.reader = asyncio.StreamReader()  # what the peer sent
        self.queue = asyncio.Queue()          # what goes to the peer
        self.window = 256 * 1024              # bytes that the peer still takes
        self.grown = asyncio.Event()
        self.queue.put_nowait(first_byte)


class Yamux:
    def __init__(self, reader, writer, *first_bytes):
        self.reader, self.writer = reader, writer
        self.streams = {2 * n + 1: Stream(byte) for n, byte in enumerate(first_bytes)}  # a client's are odd
        self.answered = asyncio.Event()

    def send(self, kind, flags, stream, length, body=b""):
        self.writer.write(struct.pack(">BBHII", 0, kind, flags, stream, length) + body)

    async def run(self):
        """Carries bytes until something breaks, and says by its error what."""
        pumps = []
        for number, stream in self.streams.items():
            self.send(WINDOW, SYN, number, 0)  # opens it
            pumps.append(self.pump(number, stream))
        await until_one_ends(self.receive(), self.keep_alive(), *pumps)

    async def receive(self):
        while True:
            version, kind, flags, number, length = struct.unpack(">BBHII", await self.reader.readexactly(12))
            if version or kind > GO_AWAY:
                raise Malformed("not yamux")
            if kind == PING:
                if flags & SYN:
                    self.send(PING, ACK, 0, length)
                else:
                    self.answered.set()
                continue
            stream = self.streams.get(number)
            if kind == GO_AWAY or flags & (FIN | RST) or not stream:
                raise ConnectionResetError("the node ends the session")
            if kind == WINDOW:
                stream.window += length
                stream.grown.set()
            elif length > 256 * 1024:
                raise Malformed("more than the window")
            elif length:
                stream.reader.feed_data(await self.reader.readexactly(length))
                self.send(WINDOW, 0, number, length)  # the readers keep up: it may send as much again

    async def pump(self, number, stream):
        while True:
            rest = await stream.queue.get()
            while rest:
                while not stream.window:
                    stream.grown.clear()
                    await stream.grown.wait()
                size = min(len(rest), stream.window, 16 * 1024)
                stream.window -= size
                self.send(DATA, 0, number, size, rest[:size])
                rest = rest[size:]
                await asyncio.wait_for(self.writer.drain(), WRITE_TIMEOUT)

    async def keep_alive(self):
        for number in range(1 << 32):
            await asyncio.sleep(KEEP_ALIVE)
            self.answered.clear()
            self.send(PING, SYN, 0, number)
            await asyncio.wait_for(self.answered.wait(), KEEP_ALIVE)


async def until_one_ends(*coroutines):
    """Runs all, ends all when one ends, and raises that one's error."""
    tasks = [asyncio.ensure_future(coroutine) for coroutine in coroutines]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def now_ms():
    return int(time.time() * 1000)


def cut(text, size):
    """The text, in at most size bytes of UTF-8."""
    return str(text).encode("utf-8", "replace")[:size].decode("utf-8", "ignore")
