"""Connections to admin nodes: hello, registration, heartbeats, backoff (proto/SPEC.md, sections 2 to 5)."""
import asyncio
import logging
import os
import random
import time

import wire

HELLO_TIMEOUT, LEASE_TTL, HEARTBEAT = 5, 15, 3  # seconds
log = logging.getLogger("carillon")


class Refused(Exception):
    """A node ended the connection and said why (section 2, error codes)."""

    def __init__(self, error):
        super().__init__("{code}: {message}".format(**error))
        self.retry_after = error["retry_after_ms"] / 1000  # seconds; 0 = as the backoff says, negative = it will not help


class Moment:
    """Now, by both clocks: whichever says that more time has passed since is right (sections 5 and 6)."""

    def __init__(self):
        self.monotonic, self.wall = time.monotonic(), time.time()

    def age(self):
        return max(time.monotonic() - self.monotonic, time.time() - self.wall)


class Session:
    """One CONTROL connection to one node. What it hears about attempts goes to the executor."""

    def __init__(self, fleet, address):
        self.fleet, self.executor, self.address = fleet, fleet.executor, address
        self.node, self.id, self.seq, self.unanswered, self.beats, self.mux = "", 0, 0, {}, {}, None

    async def run(self):
        reader, writer, hello = await self.fleet.dial(self.address, purpose="PURPOSE_CONTROL")
        try:
            self.node, self.id = hello["node_id"], hello["session_id"]
            if self.node in self.fleet.sessions:
                return  # two addresses of one node: its first session is enough
            self.mux = wire.Yamux(reader, writer, b"C", b"X")
            await wire.until_one_ends(self.mux.run(), self.live())
        finally:
            if self.fleet.sessions.get(self.node) is self:
                del self.fleet.sessions[self.node]
                self.executor.session_lost(self)
            writer.close()

    async def live(self):
        sent = self.beats[0] = Moment()
        self.control(register=self.executor.registration())
        answer = await asyncio.wait_for(self.receive(1, "ControlToExecutor"), HELLO_TIMEOUT)
        if "registered" not in answer:
            raise Refused(answer["error"]) if "error" in answer else wire.Malformed("no Registered")
        answer = answer["registered"]
        log.info("registered with node %s as instance %d", self.node, answer["instance_id"])
        for notice in answer["notices"]:
            log.warning("not taken: %s: %s %s", notice["subject"], notice["code"], notice["message"])
        self.fleet.lease_ttl = answer["lease_ttl_ms"] / 1000 or LEASE_TTL
        self.fleet.interval = answer["heartbeat_interval_ms"] / 1000 or HEARTBEAT
        self.fleet.sessions[self.node] = self
        self.on_nodes(answer.get("nodes", {"nodes": []}))
        self.executor.session_stands(self, sent, answer)
        await wire.until_one_ends(self.listen(1, "ControlToExecutor"), self.listen(3, "CommandToExecutor"), self.beat())

    async def receive(self, stream, name):
        return await wire.read_frame(self.mux.streams[stream].reader, name)

    async def listen(self, stream, name):
        while True:
            for field, body in (await self.receive(stream, name)).items():
                if hasattr(self, "on_" + field):
                    getattr(self, "on_" + field)(body)
                elif hasattr(self.executor, "on_" + field):  # messages that neither knows are ignored
                    getattr(self.executor, "on_" + field)(self, body)

    async def beat(self):
        while len(self.unanswered) < 4:
            self.heartbeat()
            await asyncio.sleep(self.fleet.interval)
        raise ConnectionError("four heartbeats without an answer")

    def heartbeat(self):
        self.seq += 1
        self.unanswered[self.seq] = self.beats[self.seq] = Moment()
        self.beats = {seq: sent for seq, sent in self.beats.items() if not self.executor.late(sent)}
        self.control(heartbeat=dict(self.executor.load(), seq=self.seq))

    def on_heartbeat_ack(self, body):
        sent = self.unanswered.get(body["seq"])
        self.unanswered = {seq: moment for seq, moment in self.unanswered.items() if seq > body["seq"]}
        if sent and body["lease_renewed"]:
            self.executor.renewed(sent)

    def on_nodes(self, body):
        self.fleet.nodes = {node["id"]: node["address"] for node in body["nodes"]} or self.fleet.nodes

    def on_drain(self, body):
        log.info("node %s stops: %s", self.node, body["reason"])  # it ends the session when it is ready

    def on_error(self, body):
        raise Refused(body)

    def control(self, **body):
        self.mux.streams[1].queue.put_nowait(wire.frame("ControlToAdmin", body))

    def command(self, **body):
        self.mux.streams[3].queue.put_nowait(wire.frame("CommandToAdmin", body))


class Fleet:
    """Keeps one session to each node."""

    def __init__(self, executor, name, token, addresses, tls):
        self.executor, self.name, self.token, self.addresses, self.tls = executor, name, token, addresses, tls
        self.boot = os.urandom(16).hex()
        self.lease_ttl, self.interval = LEASE_TTL, HEARTBEAT
        self.sessions = {}  # node id -> its session, which is registered
        self.nodes = {}     # node id -> address, as the admin says
        self.paces = {}     # address -> when it may be tried again
        self.alone_since = time.monotonic() - 3600
        self.tasks = set()

    async def dial(self, address, **hello):
        """Returns reader, writer and ServerHello of a new connection; both kinds of connection begin so."""
        host, _, port = address.rpartition(":")
        connecting = asyncio.open_connection(host.strip("[]"), int(port), ssl=self.tls)
        reader, writer = await asyncio.wait_for(connecting, HELLO_TIMEOUT)
        try:
            writer.write(wire.PREFACE + wire.frame("ClientHello", dict(
                hello, min_version=1, max_version=1, join_token=self.token, executor=self.name, boot_id=self.boot,
                client="carillon-python-example/1")))
            answer = await asyncio.wait_for(wire.read_frame(reader, "ServerHello", wire.MAX_HELLO), HELLO_TIMEOUT)
            if "error" in answer:
                raise Refused(answer["error"])
            return reader, writer, answer
        except BaseException:
            writer.close()
            raise

    def dial_due(self):
        """Dials what should have a session, has none, and whose pause is over."""
        now = time.monotonic()
        if self.sessions:
            self.alone_since = now
        targets = set(self.nodes.values())
        if not self.nodes or now - self.alone_since > 3:
            targets |= set(self.addresses)
        targets -= {s.address for s in self.sessions.values()} | {self.nodes.get(node) for node in self.sessions}
        for address in targets:
            pace = self.paces.setdefault(address, {"failures": 0, "due": 0})
            if pace["due"] <= now:
                pace["due"] = float("inf")  # until this try has ended
                task = asyncio.ensure_future(self.keep(address, pace))
                self.tasks.add(task)
                task.add_done_callback(self.tasks.discard)

    async def keep(self, address, pace):
        began, refused, reason = time.monotonic(), None, None
        try:
            await Session(self, address).run()
        except Exception as error:  # whatever it was, it ends this session and no other
            refused, reason = getattr(error, "retry_after", None), repr(error)
        if time.monotonic() - began >= 30:
            pace["failures"] = 0
        bound = 15 if self.sessions or refused is not None else 3
        pause = random.uniform(0, min(bound, 0.1 * 2 ** min(pace["failures"], 10)))
        pace["failures"] += 1
        pause = 60 if refused and refused < 0 else max(pause, refused or 0)
        pace["due"] = time.monotonic() + pause
        log.warning("no session with %s, again in %.1f s: %s", address, pause, reason)

    def other(self, than):
        """A session, rather not this one; None when there is none."""
        others = [s for s in self.sessions.values() if s is not than]
        return next(iter(others or self.sessions.values()), None)

    async def close(self):
        for session in self.sessions.values():
            session.mux.send(wire.GO_AWAY, 0, 0, 0)
        tasks = list(self.tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
