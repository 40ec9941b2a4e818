"""An executor whose handler waits until the file GATE exists, and tells in GATE.cancelled why it could not."""
import asyncio
import logging
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../proto/examples/python-executor"))
from executor import Executor  # noqa: E402

executor = Executor("shop", os.environ["CARILLON_EXECUTOR_TOKEN"], [os.environ["CARILLON_EXECUTOR_ADDRESSES"]])


@executor.handler("gate")
async def gate(attempt, _):
    attempt.log("waits")
    try:
        while not os.path.exists(os.environ["GATE"]):
            await asyncio.sleep(0.02)
    except asyncio.CancelledError:
        with open(os.environ["GATE"] + ".cancelled", "w") as witness:
            witness.write(f"{attempt.offer['attempt']} {attempt.cause}")
        raise
    attempt.log("passed")
    return {"passed": True}


logging.basicConfig(level=logging.INFO)
asyncio.run(executor.run())
