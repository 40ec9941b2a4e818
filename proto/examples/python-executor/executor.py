"""A small Carillon executor, written from proto/SPEC.md: what becomes of an offer (sections 6, 7 and 9).

One asyncio loop and no locks: every reaction to a message is a plain function
that runs to its end. The journal is memory: results survive connections, but
not the process; section 7 says what that costs.
"""
import asyncio
import collections
import json
import logging
import os
import signal
import socket
import time

import logs
import session
import wire

ACCEPT_TTL, LEASE_MARGIN, KILL_GRACE, RESEND = 5, 3, 10, 10  # seconds
MAX_OUTPUT, MAX_ERROR = 256 << 10, 16 << 10
MAX_LISTED = 4096    # our own choice: attempts in a registration, which has to fit its frame
TICK = 0.1           # seconds, our own choice: how often what depends on time is looked at
REMEMBERED = 100000  # our own choice: how many executions are known when they are over, to refuse copies of their offers
KILLS = ("killed", "superseded")
STOPPING = "the executor stops"
log = logging.getLogger("carillon")


class Permanent(Exception):
    """Raised by a handler: a retry would not help."""


class RetryAfter(Exception):
    """Raised by a handler as RetryAfter(seconds, text): not again before that."""


class Attempt:
    """One (execution, fence) that was taken. Handlers get it: to read its offer, and to log."""

    def __init__(self, executor, via, offer):
        self.offer, self.session = offer, via
        self.id = {"execution_id": offer["execution_id"], "fence": offer["fence"]}
        self.key = tuple(self.id.values())
        self.phase, self.answered, self.started, self.started_ms = "ACCEPTED", session.Moment(), None, 0
        self.task, self.cause, self.cancelled, self.reported = None, "", None, False
        self.run_log = logs.RunLog(executor.shipper, dict(self.id, attempt=offer["attempt"]))

    def log(self, message, level=0, **attrs):
        """Adds a line to the run's log. Levels: -4 debug, 0 info, 4 warn, 8 error."""
        self.run_log.write(message, level, attrs)


class Executor:
    def __init__(self, name, token, addresses, slots=4, tls=None, grace=25):
        self.slots, self.grace, self.draining, self.began_ms = slots, grace, False, wire.now_ms()
        self.fleet = session.Fleet(self, name, token, addresses, tls)
        self.shipper = logs.Shipper(self.fleet)
        self.handlers = {}
        self.attempts = {}  # key -> attempt that holds a slot
        self.results = {}   # key -> results that wait for their acknowledgement, first to last
        self.fences = collections.OrderedDict()   # execution -> its highest fence that was taken
        self.refused = collections.OrderedDict()  # keys of one-step offers that were refused
        self.lease, self.fenced = None, False

    def handler(self, name, **about):
        """Registers an async function (attempt, input) → output. about: idempotent, description, input_schema …"""
        def add(function):
            self.handlers[name] = function, dict(about, name=name)
            return function
        return add

    # ---- what sessions ask and tell ----

    def load(self):
        return {"running": len(self.attempts), "slots": self.slots, "draining": self.draining}

    def registration(self):
        """All that was taken and is not settled; the admin may believe that there is nothing else (section 4)."""
        name, items = socket.gethostname(), self.inventory(self.attempts.values())
        items += [{"execution_id": key[0], "fence": key[1], "phase": "ATTEMPT_PHASE_DONE", "boot_id": self.fleet.boot}
                  for key in self.results if key not in self.attempts]
        return {
            "instance_name": f"{name}-{os.getpid()}", "host": name, "pid": os.getpid(), "slots": self.slots,
            "started_at_ms": self.began_ms, "handlers": [about for _, about in self.handlers.values()],
            "inventory": items[:MAX_LISTED], "inventory_complete": len(items) <= MAX_LISTED, "draining": self.draining,
        }

    def inventory(self, attempts):
        return [dict(a.id, phase="ATTEMPT_PHASE_" + a.phase, boot_id=self.fleet.boot) for a in attempts]

    def session_stands(self, via, sent, registered):
        self.renewed(sent)
        self.on_verdicts(via, registered)
        for key in self.results:
            self.send_result(key, via)

    def session_lost(self, via):
        """A grant may be lost with it: another node may know. What it carried goes out again."""
        other = self.fleet.other(than=via)
        if other:
            orphans = [a for a in self.attempts.values() if a.phase == "ACCEPTED" and a.session is via]
            if orphans:
                other.control(inventory={"items": self.inventory(orphans)})
            for key, waiting in self.results.items():
                if waiting[0]["via"] is via:
                    self.send_result(key, other)

    def renewed(self, sent):
        if not self.lease or sent.monotonic > self.lease.monotonic:
            self.lease, self.fenced = sent, False

    def check_lease(self):
        """From the lease's end on another instance may run the same, so we end before."""
        if self.lease and not self.fenced and self.late(self.lease):
            log.error("the lease is lost, everything is cancelled")
            self.fenced = True
            self.cancel_all("lease_lost")

    def late(self, sent):
        """Whether a lease that counts from then may be over; heartbeats of long ago are forgotten."""
        return not sent or sent.age() > self.fleet.lease_ttl - LEASE_MARGIN

    # ---- attempts: section 6 ----

    def on_offers(self, via, body):
        self.check_lease()  # the process may have been frozen since the last look
        for offer in body["offers"]:
            attempt = Attempt(self, via, offer)
            code = self.refusal(attempt) or (offer["granted"] and self.late(via.beats.get(offer["lease_seq"])) and "busy") or ""
            via.command(answers={"answers": [dict(attempt.id, accepted=not code, reject_code=code)]})
            if not code:
                self.take(attempt)
            elif code == "duplicate":
                self.tell_started(self.attempts.get(attempt.key), via)
            elif offer["granted"]:
                remember(self.refused, attempt.key, True)

    def refusal(self, attempt):
        (execution, fence), offer = attempt.key, attempt.offer
        taken = self.fences.get(execution, 0)
        if fence <= taken:
            return "duplicate" if fence == taken else "void"
        if offer["handler"] not in self.handlers:
            return "unknown_handler"
        if self.draining:
            return "draining"
        if self.fenced or len(self.attempts) >= self.slots or attempt.key in self.refused:
            return "busy"
        return ""

    def take(self, attempt):
        execution, fence = attempt.key
        older = self.attempts.get((execution, self.fences.get(execution)))
        if older:
            self.cancel(older, "lease_lost")
        remember(self.fences, execution, fence)
        self.attempts[attempt.key] = attempt
        if attempt.offer["granted"]:
            self.start(attempt)

    def on_grants(self, via, body):
        self.check_lease()
        for grant in body["grants"]:
            self.on_grant(via, (grant["execution_id"], grant["fence"]), grant["granted"])

    def on_grant(self, via, key, granted):
        attempt = self.attempts.get(key)
        if attempt and attempt.phase != "ACCEPTED":
            return  # it came twice
        if not granted:
            self.attempts.pop(key, None)
            return
        late = attempt and attempt.answered.age() > ACCEPT_TTL
        if late:
            self.ended(attempt, "NEVER_STARTED", error="the grant came too late")
        if late or not attempt:
            via.command(answers={"answers": [{"execution_id": key[0], "fence": key[1], "reject_code": "void"}]})
            return
        attempt.session = via
        self.start(attempt)

    def on_verdicts(self, via, body):
        for verdict in body["verdicts"]:
            key = verdict["execution_id"], verdict["fence"]
            attempt = self.attempts.get(key)
            if verdict["verdict"] == "VERDICT_GRANT":
                self.on_grant(via, key, True)
            elif verdict["verdict"] == "VERDICT_DROP" and attempt and attempt.phase == "ACCEPTED":
                del self.attempts[key]
            elif verdict["verdict"] == "VERDICT_DROP" and attempt:
                self.cancel(attempt, "lease_lost")

    def start(self, attempt):
        attempt.phase, attempt.started, attempt.started_ms = "RUNNING", session.Moment(), wire.now_ms()
        self.tell_started(attempt, attempt.session)
        try:
            data = json.loads(attempt.offer["input"] or b"null")
        except ValueError as error:
            self.ended(attempt, "FAILED", error_kind="bad_input", error=wire.cut(error, MAX_ERROR))
            return
        function, _ = self.handlers[attempt.offer["handler"]]
        attempt.task = asyncio.ensure_future(function(attempt, {} if data is None else data))
        attempt.task.add_done_callback(lambda task: self.returned(attempt, task))

    def tell_started(self, attempt, via):
        if attempt and attempt.phase == "RUNNING":
            via.command(started={"started": [dict(attempt.id, started_at_ms=attempt.started_ms)]})

    def on_cancels(self, via, body):
        for cancel in body["cancels"]:
            key, reason = (cancel["execution_id"], cancel["fence"]), cancel["reason"]
            if key in self.attempts:
                self.cancel(self.attempts[key], reason if reason in ("superseded", "timeout", "lease_lost") else "killed")
            elif key[1] > self.fences.get(key[0], 0):  # not taken yet: it never will be
                remember(self.fences, *key)
                self.owe(key, "NEVER_STARTED", error="cancelled before its offer was taken")

    def cancel(self, attempt, cause):
        if attempt.cause:
            return  # the first cause counts
        attempt.cause, attempt.cancelled = cause, session.Moment()
        if attempt.task:
            attempt.task.cancel()
        elif cause in KILLS:
            self.ended(attempt, "CANCELLED", error_kind="cancelled", error=cause + " before it started")
        else:
            self.ended(attempt, "NEVER_STARTED", error=cause)

    def cancel_all(self, cause):
        for attempt in list(self.attempts.values()):
            self.cancel(attempt, cause)

    # ---- results: section 7 ----

    def returned(self, attempt, task):
        try:
            value = task.result()
            output = b"" if value is None else json.dumps(value, allow_nan=False).encode()
        except asyncio.CancelledError:
            kind = "stopping" if attempt.cause == STOPPING else "retryable"
            self.failed(attempt, kind, attempt.cause or "it cancelled itself")
        except Exception as error:
            kind = "permanent" if isinstance(error, Permanent) else "retryable"
            after = int(error.args[0] * 1000) if isinstance(error, RetryAfter) else 0
            self.failed(attempt, kind, f"{type(error).__name__}: {error}", retry_after_ms=after)
        else:
            if len(output) > MAX_OUTPUT:
                self.failed(attempt, "output_too_large", f"the output has {len(output)} bytes")
            else:
                self.ended(attempt, "SUCCEEDED", output=output)

    def failed(self, attempt, kind, text, **more):
        outcome = "FAILED"
        if attempt.cause in KILLS:
            outcome, kind = "CANCELLED", "cancelled"
        elif attempt.cause == "timeout":
            outcome, kind = "TIMED_OUT", "timeout"
        self.ended(attempt, outcome, error_kind=kind, error=wire.cut(text, MAX_ERROR), **more)

    def ended(self, attempt, outcome, **fields):
        """The result of an attempt. Its slot is free now, unless the handler still runs."""
        if attempt.started:
            fields.update(started_at_ms=attempt.started_ms, duration_us=int(attempt.started.age() * 1e6))
        if not fields.get("still_running"):
            del self.attempts[attempt.key]
        attempt.run_log.note_dropped()
        self.owe(attempt.key, outcome, log_lines=attempt.run_log.lines, **fields)

    def owe(self, key, outcome, **fields):
        result = dict(fields, execution_id=key[0], fence=key[1], outcome="OUTCOME_" + outcome, boot_id=self.fleet.boot)
        waiting = self.results.setdefault(key, [])
        waiting.append({"result": result, "via": None, "pause": RESEND, "due": 0})
        if len(waiting) == 1:  # the second result of an attempt waits for the first one's acknowledgement
            self.send_result(key)

    def send_result(self, key, via=None):
        first = self.results[key][0]
        via = via or self.fleet.other(than=first["via"])
        if via:
            via.command(results={"results": [first["result"]]})
            first.update(via=via, due=time.monotonic() + first["pause"], pause=min(60, 2 * first["pause"]))

    def on_acks(self, via, body):
        for ack in body["acks"]:
            waiting = self.results.get((ack["execution_id"], ack["fence"]))
            if waiting and ack.get("still_running", 0) <= waiting[0]["result"].get("still_running", 0):
                waiting.pop(0)  # else it is another ack of the first of two, which was sent twice
        for key in [key for key, waiting in self.results.items() if not waiting]:
            del self.results[key]

    # ---- time and the end: sections 6, 7 and 9 ----

    async def tick(self):
        while True:
            self.fleet.dial_due()
            self.check_lease()
            for attempt in list(self.attempts.values()):
                self.watch(attempt)
            for key, waiting in self.results.items():
                if waiting[0]["due"] <= time.monotonic():
                    self.send_result(key)
            await asyncio.sleep(TICK)

    def watch(self, attempt):
        limit = attempt.offer["timeout_ms"] / 1000
        if attempt.phase == "ACCEPTED" and attempt.answered.age() > ACCEPT_TTL:
            self.ended(attempt, "NEVER_STARTED", error="no grant came in time")
        elif attempt.cancelled and not attempt.reported and attempt.cancelled.age() > KILL_GRACE:
            attempt.reported = True
            if attempt.cause == STOPPING:
                return  # the outcome is open until the handler returns or this process ends
            self.failed(attempt, "retryable", f"still runs {KILL_GRACE} s after: {attempt.cause}", still_running=True)
        elif attempt.started and limit and time.monotonic() - attempt.started.monotonic >= limit:
            self.cancel(attempt, "timeout")

    async def run(self):
        """Serves until SIGTERM or SIGINT, then drains."""
        stop, loop = asyncio.Event(), asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop.set)
        await wire.until_one_ends(self.tick(), self.shipper.run(), self.drain_after(stop))
        await self.fleet.close()

    async def drain_after(self, stop):
        await stop.wait()
        self.draining = True
        for via in self.fleet.sessions.values():
            via.control(drain={"reason": "the executor stops", "grace_ms": int(self.grace * 1000)})
            via.heartbeat()
        await until(lambda: not self.attempts, self.grace)
        self.cancel_all(STOPPING)
        await until(lambda: all(a.reported for a in self.attempts.values()), KILL_GRACE + 1)
        await until(lambda: not self.results and not self.shipper.lines, 5)


async def until(condition, seconds):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        await asyncio.sleep(TICK)


def remember(known, key, value):
    known[key] = value
    known.move_to_end(key)
    if len(known) > REMEMBERED:
        known.popitem(last=False)
