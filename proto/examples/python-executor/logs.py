"""Log lines on their way to an admin node (proto/SPEC.md, section 8)."""
import asyncio
import collections
import json
import logging
import random
import time

import session
import wire

MAX_LINE, BATCH_LINES, BATCH_BYTES = 64 << 10, 500, 64 << 10
BATCH_DELAY, ACK_TIMEOUT = 0.1, 15  # seconds
BUFFERED = 20000  # our own choice: lines in memory; what comes above is dropped and counted
log = logging.getLogger("carillon")


class RunLog:
    """The lines of one attempt."""

    def __init__(self, shipper, chunk):
        self.shipper, self.chunk, self.lines, self.dropped = shipper, chunk, 0, 0

    def write(self, message, level, attrs):
        if len(self.shipper.lines) >= BUFFERED:
            self.lines, self.dropped = self.lines + 1, self.dropped + 1
            return
        self.note_dropped()
        self.add(message, level, attrs)

    def note_dropped(self):
        if self.dropped:
            dropped, self.dropped = self.dropped, 0
            self.add("lines were dropped", 4, {"dropped": dropped})

    def add(self, message, level, attrs):
        self.lines += 1
        raw = json.dumps(attrs, default=str).encode() if attrs else b""
        if len(raw) > MAX_LINE // 2:
            raw = b'{"attrs":"too large"}'
        message = wire.cut(message, MAX_LINE - len(raw))
        line = {"at_ms": int(time.time() * 1000), "level": level, "message": message, "attrs": raw}
        self.shipper.lines.append((self, self.lines, line))


class Shipper:
    """All lines that are not stored yet, and the connection that carries them."""

    def __init__(self, fleet):
        self.fleet, self.lines = fleet, collections.deque()

    async def run(self):
        while True:
            await asyncio.sleep(BATCH_DELAY)
            to = self.fleet.other(than=None)
            if to and self.lines:
                try:
                    await self.ship_over(to)
                except Exception as error:  # nothing is lost by it: the next connection begins with the same lines
                    log.warning("log connection: %r", error)
                    await asyncio.sleep(random.uniform(0, 1))

    async def ship_over(self, to):
        reader, writer, _ = await self.fleet.dial(to.address, purpose="PURPOSE_LOGS", session_id=to.id)
        seq = 0
        try:
            while True:
                count, chunks = self.next_batch()
                if count:
                    seq += 1
                    writer.write(wire.frame("LogBatch", {"seq": seq, "chunks": chunks}))
                    answer = await asyncio.wait_for(wire.read_frame(reader, "LogAck"), ACK_TIMEOUT)
                    if "error" in answer:
                        raise session.Refused(answer["error"])
                    for _ in range(count):  # stored: only now may they be forgotten
                        self.lines.popleft()
                await asyncio.sleep(BATCH_DELAY)
        finally:
            writer.close()

    def next_batch(self):
        count, size, chunks, last = 0, 0, [], None
        for run_log, number, line in self.lines:
            if last != (run_log, number - 1):
                chunks.append(dict(run_log.chunk, first_line=number, lines=[]))
            chunks[-1]["lines"].append(line)
            count, size, last = count + 1, size + len(line["message"]) + len(line["attrs"]), (run_log, number)
            if count == BATCH_LINES or size >= BATCH_BYTES:
                break
        return count, chunks
