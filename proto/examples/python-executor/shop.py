"""Runs an executor with a few handlers. Its variables are those of the Go SDK:

CARILLON_EXECUTOR_ADDRESSES   host:port of the admin nodes, comma-separated
CARILLON_EXECUTOR_TOKEN       the join token, cjt_…
CARILLON_EXECUTOR_NAME        shop, unless set
CARILLON_EXECUTOR_SLOTS       4, unless set
CARILLON_EXECUTOR_TLS         1: with TLS, judged by the system's authorities
CARILLON_EXECUTOR_TLS_CA      with TLS, judged by the authorities in this file
"""
import asyncio
import logging
import os
import ssl

from executor import Executor, Permanent, RetryAfter

ENV = {key[len("CARILLON_EXECUTOR_"):]: value for key, value in os.environ.items() if key.startswith("CARILLON_EXECUTOR_")}
shop = Executor(
    ENV.get("NAME", "shop"), ENV["TOKEN"], ENV["ADDRESSES"].split(","), slots=int(ENV.get("SLOTS", 4)),
    tls=ssl.create_default_context(cafile=ENV.get("TLS_CA")) if ENV.get("TLS") or ENV.get("TLS_CA") else None)


@shop.handler("total", description="Adds up prices", idempotent=True)
async def total(attempt, order):
    prices = order.get("prices", [])
    for price in prices:
        if price < 0:
            raise Permanent(f"a price of {price}")
    attempt.log("added up", prices=len(prices))
    return {"total": sum(prices)}


@shop.handler("pay", description="Waits as long as it is told; at most one start")
async def pay(attempt, order):
    attempt.log("began", attempt=attempt.offer["attempt"])
    await asyncio.sleep(order.get("seconds", 0))
    attempt.log("done")
    return {"paid": True}


@shop.handler("copy", description="Repeats a text", idempotent=True)
async def copy(attempt, order):
    return {"text": order["text"] * order["times"]}


@shop.handler("fetch", description="Fails until its third attempt", idempotent=True)
async def fetch(attempt, order):
    if attempt.offer["attempt"] < 3:
        raise RetryAfter(0.01, "the other side is busy")
    return {"attempt": attempt.offer["attempt"]}


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    asyncio.run(shop.run())
