"""Uses a server by the client that openapi-python-client makes of docs/openapi.json:
../../clients.sh generates it beside this file and runs it."""

import datetime
import os
import sys
import time

from carillon import AuthenticatedClient, Client
from carillon.api.executors import create_executor, list_executors
from carillon.api.jobs import create_job, delete_job, explain_fire, get_job, run_job
from carillon.api.runs import explain_run, get_run, list_runs
from carillon.api.session import login
from carillon.models import (
    CreateExecutorInputBody, ExecutorChoice, JobWrite, LoginInputBody, Problem, ProblemCode, RunRequest, ScheduleWrite,
    ScheduleWriteKind, StartedRunState,
)

url = os.environ["CARILLON_URL"]
passed = failed = 0


def check(ok, what, answer):
    global passed, failed
    if ok:
        passed += 1
    else:
        failed += 1
        print(f"FAIL {what}: {answer}")


def problem(answer, status, code):
    return answer.status_code == status and isinstance(answer.parsed, Problem) and answer.parsed.code == code


def trip():
    anonymous = Client(base_url=url)
    wrong = login.sync_detailed(client=anonymous, body=LoginInputBody(username="admin", password="not this one"))
    check(problem(wrong, 401, ProblemCode.UNAUTHENTICATED), "a wrong password is a typed problem", wrong)
    session = login.sync(client=anonymous, body=LoginInputBody(username="admin", password=os.environ["CARILLON_PASSWORD"]))
    c = AuthenticatedClient(base_url=url, token=session.access_token, timeout=60.0, raise_on_unexpected_status=True)

    name = f"py-{time.time_ns()}"
    made = create_executor.sync_detailed(client=c, body=CreateExecutorInputBody(name=name))
    check(made.status_code == 201 and made.parsed.name == name, "create executor", made)
    twice = create_executor.sync_detailed(client=c, body=CreateExecutorInputBody(name=name))
    check(problem(twice, 409, ProblemCode.CONFLICT), "the same name again", twice)

    executor, pages, found, more = "", 0, False, {}
    while True:
        page = list_executors.sync(client=c, limit=1, **more)
        pages += 1
        for one in page.items:
            found = found or one.name == name
            executor = one.id if one.instances_online > 0 else executor
        if page.next_cursor is None:
            break
        more = {"cursor": page.next_cursor}
    check(pages >= 2 and found and executor, "all executors by pages of one", (pages, found, executor))

    write = JobWrite(
        name=name, executor=ExecutorChoice(id=executor), handler=os.environ["CARILLON_HANDLER"], schedule=ScheduleWrite(kind=ScheduleWriteKind.NONE)
    )
    job = create_job.sync(client=c, body=write)
    check(job.declared is None and job.last_run is None and job.next_fire_at is None, "what is not there is null", job)
    write.name, write.handler, write.schedule = "x", "there-is-none", ScheduleWrite(kind=ScheduleWriteKind.CRON)
    unfit = create_job.sync_detailed(client=c, body=write)
    check(unfit.status_code == 422 and len(unfit.parsed.errors) > 0, "wrong fields are listed", unfit)
    check(get_job.sync(job.id, client=c).revision == 1, "get job", job)

    def run(**how):
        return run_job.sync_detailed(job.id, client=c, body=RunRequest(), **how)

    first = run(idempotency_key=name)
    check(first.status_code == 201, "run", first)
    replay = run(idempotency_key=name)
    check(replay.status_code == 200 and replay.parsed.id == first.parsed.id, "the same key", replay)
    hurried = run(wait="1ms")
    check(hurried.status_code == 202 and hurried.parsed.code == "wait_timed_out", "not waited for", hurried)
    ended = run(wait="30s")
    check(ended.status_code == 201 and ended.parsed.state == StartedRunState.SUCCEEDED and ended.parsed.instance is not None, "waited for", ended)
    whole = get_run.sync_detailed(ended.parsed.id, client=c)
    check(len(whole.parsed.attempts) == 1, "get run", whole)
    why = explain_run.sync(ended.parsed.id, client=c)
    check(why.run.id == ended.parsed.id and why.stamps is not None and why.backfill is None and why.summary.en, "explain", why)
    never = explain_fire.sync(job.id, client=c, at=datetime.datetime(2020, 1, 1, tzinfo=datetime.timezone.utc))
    check(never.run is None and never.stamps is None, "no run at that instant", never)
    runs = list_runs.sync(client=c, job_id=job.id, limit=2)
    check(len(runs.items) == 2 and runs.next_cursor is not None, "list runs", runs)
    unchanged = get_run.sync_detailed(ended.parsed.id, client=c, if_none_match=whole.headers["ETag"])
    check(unchanged.status_code == 304 and unchanged.parsed is None, "not sent again", unchanged)

    gone = delete_job.sync_detailed(job.id, client=c)
    check(gone.status_code == 204, "delete", gone)
    check(problem(get_job.sync_detailed(job.id, client=c), 404, ProblemCode.NOT_FOUND), "after that", gone)


try:
    trip()
except Exception as err:  # what follows would fail for the same reason
    failed += 1
    print(f"FAIL {err!r}")
print(f"{passed} passed, {failed} failed")
sys.exit(failed > 0)
