"""The smallest Carillon executor that keeps the promises of proto/SPEC.md: one file, Python 3.8 or newer, no library.

Numbers of fields are those of carillon.proto; (6) names the section of SPEC.md that a part follows. A run starts at most once
per attempt, a result is sent until the admin has it, and everything ends before the lease does. What it leaves out:
- a journal on disk (7): a process that dies takes its results along; what it ran is lost when its lease ends, after 15 s;
- draining (9): any signal is such a death, so stop it when nothing runs;
- sessions with all nodes (5): it has one, with the first that answers; what other nodes plan comes a second or two later;
- asking another node when a session ends (4): a grant that was lost with it costs 5 s, then the run is offered again;
- one-step offers (6): they are refused, so let no other program register these handlers as idempotent;
- still_running (6): a handler that swallows its cancellation keeps its run cancelling until it returns;
- logs (8), progress and steps (7.1), certificates (2.1). ../python-executor does all of this but 2.1, 7.1 and the journal.
"""
import asyncio, collections, functools, json, os, random, socket, ssl, struct, sys, time, types

HANDLERS, SLOTS, BOOT = {}, 4, os.urandom(16).hex()  # name -> async function (input) -> output
ACCEPTED, RUNNING, DONE, GRANT, DROP = 1, 3, 4, 2, 3                    # AttemptPhase, Verdict
SUCCEEDED, FAILED, TIMED_OUT, CANCELLED, NEVER_STARTED = 1, 2, 3, 4, 5  # Outcome

def varint(number):  # protobuf (1.1)
    out, number = b"", number & (1 << 64) - 1
    while number > 127:
        out, number = out + bytes([number & 127 | 128]), number >> 7
    return out + bytes([number])

def encode(*fields):  # each (number, value): an integer, text or bytes
    out = b""
    for number, value in fields:
        value = value.encode("utf-8", "replace") if isinstance(value, str) else value
        out += (varint(number << 3) + varint(value) if isinstance(value, int) else
                varint(number << 3 | 2) + varint(len(value)) + value)
    return out

def decode(data):  # number -> all its values; last() reads a field that is not repeated
    at, out = 0, collections.defaultdict(list)
    def number():
        nonlocal at
        value = shift = 0
        while True:
            at, byte = at + 1, data[at]
            value, shift = value | (byte & 127) << shift, shift + 7
            if byte < 128:
                return value - (value >> 63 << 64)
    while at < len(data):
        tag = number()
        value = number() if tag & 7 in (0, 2) else {1: 8, 5: 4}[tag & 7]
        if tag & 7:  # it is a length
            value, at = data[at:at + value], at + value
        out[tag >> 3].append(value)
    return out

def last(message, number, default=0):
    value = message[number][-1] if message[number] else default
    return value.decode() if isinstance(default, str) and message[number] else value

def entries(message, number):  # of a batch: they are its field 1, and begin with execution_id and fence, our key
    for entry in [decode(entry) for body in message[number] for entry in decode(body)[1]]:
        yield (last(entry, 1), last(entry, 2)), entry

named = lambda key: ((1, key[0]), (2, key[1]))

CRC = list(range(256))
for _ in range(8):
    CRC = [entry >> 1 ^ (entry & 1) * 0x82F63B78 for entry in CRC]

def crc32c(data):
    return functools.reduce(lambda crc, byte: CRC[(crc ^ byte) & 255] ^ crc >> 8, data, 0xFFFFFFFF) ^ 0xFFFFFFFF

def frame(*fields):  # (1)
    payload = encode(*fields)
    return struct.pack(">II", len(payload), crc32c(payload)) + payload

def take_frame(buffer, limit=1 << 20):  # None until the first one has arrived whole
    length, checksum = struct.unpack_from(">II", buffer) if len(buffer) >= 8 else (0, 0)
    if length > limit or 8 <= 8 + length <= len(buffer) and crc32c(buffer[8:8 + length]) != checksum:
        raise ConnectionError("too long a frame, or a wrong checksum")
    if 8 + length <= len(buffer):
        payload, buffer[:8 + length] = bytes(buffer[8:8 + length]), b""
        return decode(payload)

def now():
    return time.monotonic(), time.time()

def age(moment):  # by the clock that says more: the process may have been frozen (5, 6)
    return max(here - there for here, there in zip(now(), moment))

class Executor:  # one loop and no locks: what a message does is done when the next one is read
    def __init__(self, name, token, addresses, tls=None):
        self.name, self.token, self.addresses, self.tls, self.writer, self.registered = name, token, addresses, tls, None, False
        self.attempts, self.results, self.fences = {}, {}, {}  # taken; not acknowledged; execution -> highest fence taken
        self.ttl, self.interval, self.lease, self.beats = 15, 3, (0, 0), {}

    async def run(self):
        failures, ticking = 0, asyncio.ensure_future(self.tick())
        while not ticking.done():
            for address in self.addresses:
                began, wait = time.monotonic(), 0
                try:
                    await self.session(address)
                except Exception as error:  # whatever it was, it ends this session only
                    wait = getattr(error, "wait", 0)
                    print("no session with", address, repr(error), file=sys.stderr)
                finally:
                    self.registered = bool(self.writer and self.writer.close())
                failures = 0 if time.monotonic() - began > 30 else min(failures + 1, 8)
                await asyncio.sleep(60 if wait < 0 else max(wait, random.uniform(0, min(3, 0.1 * 2 ** failures))))

    async def session(self, address):  # a CONTROL connection (2, 3)
        host, _, port = address.rpartition(":")
        self.reader, self.writer = await asyncio.wait_for(asyncio.open_connection(host.strip("[]"), int(port), ssl=self.tls), 5)
        self.writer.write(b"CARILLON\x00\x01" + frame(  # ClientHello: versions 1 to 1, purpose CONTROL
            (1, 1), (2, 1), (3, self.token), (4, self.name), (5, BOOT), (6, 1), (8, "minimal/1")))
        head = await self.read(8)
        self.fail_on(take_frame(bytearray(head + await self.read(min(4097, struct.unpack(">II", head)[0]))), 4096)[5])
        self.arrived, self.waiting, self.window = {1: bytearray(), 3: bytearray()}, {1: b"C", 3: b"X"}, {1: 1 << 18, 3: 1 << 18}
        for stream in (1, 3):  # WindowUpdate with SYN opens it
            self.mux(1, 1, stream, 0)
            self.send(stream, b"")
        self.check()
        self.beats = {0: now()}  # registering counts as a heartbeat
        items = {**{key: attempt.phase for key, attempt in self.attempts.items()}, **dict.fromkeys(self.results, DONE)}
        self.send(1, frame((1, encode(  # Register with the inventory (9), which is complete (14): taken and not settled (4)
            (1, f"{socket.gethostname()}-{os.getpid()}"), (6, SLOTS), (14, 1), *[(8, encode((1, name))) for name in HANDLERS],
            *[(9, encode(*named(key), (3, phase), (4, BOOT))) for key, phase in items.items()]))))
        while True:
            await self.receive()

    async def read(self, size):  # the admin answers heartbeats, so silence for three of them ends the session (5)
        return await asyncio.wait_for(self.reader.readexactly(size), 3 * self.interval)

    def mux(self, kind, flags, stream, length, data=b""):  # a yamux frame (3.1)
        self.writer.write(struct.pack(">BBHII", 0, kind, flags, stream, length) + data)

    def send(self, stream, data):
        self.waiting[stream] += data
        while self.waiting[stream] and self.window[stream]:  # the rest goes on the next WindowUpdate
            part = self.waiting[stream][:min(self.window[stream], 16384)]
            self.waiting[stream], self.window[stream] = self.waiting[stream][len(part):], self.window[stream] - len(part)
            self.mux(0, 0, stream, len(part), part)

    def command(self, number, *entry):  # a batch of one: answers 1, started 2, results 3
        self.send(3, frame((number, encode((1, encode(*entry))))))

    async def receive(self):
        version, kind, flags, stream, length = struct.unpack(">BBHII", await self.read(12))
        if version or kind > 2 or flags & 12 or kind == 0 and length > 1 << 18:
            raise ConnectionError("the node ended the session")  # GoAway, FIN or RST; or it is no yamux
        if kind == 2 and flags & 1:
            self.mux(2, 2, 0, length)  # the answer to a Ping
        elif kind == 1:
            self.window[stream] += length
            self.send(stream, b"")
        elif kind == 0:
            self.arrived[stream] += await self.read(length)
            self.mux(1, 0, stream, length)  # it is read: as much may follow
            for message in iter(lambda: take_frame(self.arrived[stream]), None):
                (self.on_control if stream == 1 else self.on_command)(message)

    def fail_on(self, errors):  # of a node, which then closes
        for error in map(decode, errors):
            failure = ConnectionError(last(error, 1, ""), last(error, 2, ""))
            failure.wait = last(error, 3) / 1000  # negative: somebody must change something first
            raise failure

    def on_control(self, message):  # (4, 5)
        self.fail_on(message[5])
        for registered in map(decode, message[1]):
            self.interval, self.ttl = last(registered, 2) / 1000 or 3, last(registered, 3) / 1000 or 15
            self.registered, self.lease = True, max(self.lease, self.beats[0])
            print("registered as instance", last(registered, 1), "not taken:", registered[6], file=sys.stderr)
            for item in map(decode, registered[4]):
                key, verdict = (last(item, 1), last(item, 2)), last(item, 3)
                if verdict == GRANT:
                    self.grant(key, True)
                elif verdict == DROP:
                    self.cancel(key, "lease_lost")
            for result in self.results.values():
                result.due = 0  # after each reconnect all of them go out again (7)
        for ack in map(decode, message[2]):
            if last(ack, 3):
                self.lease = max(self.lease, self.beats.get(last(ack, 1), (0, 0)))

    def on_command(self, message):  # (6)
        for key, offer in entries(message, 1):
            lost, taken = self.check(), self.fences.get(key[0], 0)
            code = ("duplicate" if key[1] == taken else "void" if key[1] < taken else
                    "unknown_handler" if last(offer, 5, "") not in HANDLERS else
                    "busy" if lost or last(offer, 11) or len(self.attempts) >= SLOTS else "")
            self.command(1, *named(key), (3, not code), (4, code))
            if not code:
                self.take(key)
                self.cancel((key[0], taken), "lease_lost")  # an older attempt of the same execution
                self.attempts[key] = types.SimpleNamespace(offer=offer, phase=ACCEPTED, since=now(), task=None, cause="")
        for key, grant in entries(message, 2):
            self.grant(key, last(grant, 3))
        for key, _ in entries(message, 3):
            self.results.pop(key, None)  # acknowledged, whatever the code
        for key, cancel in entries(message, 4):
            if key[1] > self.fences.get(key[0], 0):  # its offer is still to come, and will not be taken
                self.take(key)
                self.owe(key, NEVER_STARTED)
            self.cancel(key, last(cancel, 3, "killed"))

    def take(self, key):  # at most once, of the last 100,000 executions
        self.fences.pop(key[0], None)
        self.fences[key[0]] = key[1]
        if len(self.fences) > 100000:
            del self.fences[next(iter(self.fences))]

    def grant(self, key, granted):
        self.check()  # a late one starts nothing
        attempt = self.attempts.get(key)
        if not attempt:
            self.command(1, *named(key), (4, "void"))
        elif attempt.phase == ACCEPTED and not granted:
            del self.attempts[key]
        elif attempt.phase == ACCEPTED:  # else it came twice
            attempt.phase, attempt.since, attempt.task = RUNNING, now(), asyncio.ensure_future(self.call(attempt.offer))
            attempt.task.add_done_callback(lambda task: self.returned(key, attempt))
            self.command(2, *named(key), (3, int(time.time() * 1000)))

    async def call(self, offer):
        return await HANDLERS[last(offer, 5, "")](json.loads(last(offer, 9, b"") or b"{}"))

    def returned(self, key, attempt):
        try:
            value = attempt.task.result()
            output = b"" if value is None else json.dumps(value, allow_nan=False).encode()
            fields = (SUCCEEDED, (4, output)) if len(output) <= 1 << 18 else (FAILED, (5, "output_too_large"))
        except (Exception, asyncio.CancelledError) as error:
            fields = ((FAILED, (5, "retryable")) if attempt.cause in ("", "lease_lost") else
                      (TIMED_OUT, (5, "timeout")) if attempt.cause == "timeout" else (CANCELLED, (5, "cancelled")))
            fields += (6, f"{attempt.cause} {error!r}"[:4096]),
        self.owe(key, *fields, (9, int(attempt.since[1] * 1000)), (10, int(age(attempt.since) * 1e6)))

    def cancel(self, key, cause):  # of several causes the first counts
        attempt = self.attempts.get(key)
        if attempt and not attempt.task:
            self.owe(key, NEVER_STARTED if cause in ("timeout", "lease_lost") else CANCELLED)
        elif attempt and not attempt.cause:
            attempt.cause = cause if attempt.task.cancel() else ""

    def check(self):  # whether the lease is lost: before anything is taken or started, and all the time (5, 6)
        lost = age(self.lease) > self.ttl - min(3, self.ttl / 2)  # counted from the sending of what renewed it
        for key, attempt in list(self.attempts.items()):
            if lost or attempt.phase == ACCEPTED and age(attempt.since) > 5:  # the void rule: AcceptTTL
                self.cancel(key, "lease_lost")
            elif attempt.task and 0 < last(attempt.offer, 10) / 1000 <= age(attempt.since):
                self.cancel(key, "timeout")
        return lost

    def owe(self, key, outcome, *fields):  # a result, until it is acknowledged; the slot is free (7)
        self.attempts.pop(key, None)
        self.results[key] = types.SimpleNamespace(fields=[*named(key), (3, outcome), *fields, (13, BOOT)], due=0, pause=10)

    async def tick(self):
        for number in range(1, 1 << 62):
            self.check()
            if self.registered and age(max(self.beats.values())) >= self.interval:
                self.beats = {seq: sent for seq, sent in self.beats.items() if age(sent) < self.ttl}
                self.beats[number] = now()
                self.send(1, frame((2, encode((1, number), (2, len(self.attempts)), (3, SLOTS)))))  # Heartbeat
            for result in [r for r in self.results.values() if self.registered and r.due <= time.monotonic()]:
                result.due, result.pause = time.monotonic() + result.pause, min(60, 2 * result.pause)
                self.command(3, *result.fields)
            await asyncio.sleep(0.05)

def serve():  # with the variables of the Go SDK
    env = {name[len("CARILLON_EXECUTOR_"):]: value for name, value in os.environ.items() if name.startswith("CARILLON_EXECUTOR_")}
    tls = ssl.create_default_context(cafile=env.get("TLS_CA")) if env.get("TLS") or env.get("TLS_CA") else None
    asyncio.run(Executor(env.get("NAME", "shop"), env["TOKEN"], env["ADDRESSES"].split(","), tls).run())

async def pay(order):
    return await asyncio.sleep(order.get("seconds", 0), {"paid": True})

if __name__ == "__main__":
    HANDLERS["pay"] = pay
    serve()
