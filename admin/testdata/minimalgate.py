"""The minimal executor with a handler that waits until the file GATE exists.

It tells in GATE.starts each start, and in GATE.cancelled that it was cancelled.
"""
import asyncio
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../proto/examples/minimal"))
import executor  # noqa: E402


async def gate(order):
    with open(os.environ["GATE"] + ".starts", "a") as witness:
        witness.write("x")
    try:
        while not os.path.exists(os.environ["GATE"]):
            await asyncio.sleep(0.02)
    except asyncio.CancelledError:
        open(os.environ["GATE"] + ".cancelled", "w").close()
        raise
    return {"passed": order.get("text", "") * order.get("times", 0)}


executor.HANDLERS["gate"] = gate
executor.serve()
