package api

import "github.com/carillon-sched/carillon/admin/internal/domain"

// orders change no text of their object, or the entry of another operation has it.
var orders = map[string]string{
	"try-callback": "it changes nothing",
	"retry-run":    "a run's own record tells", "cancel-run": "a run's own record tells", "run-job": "a run's own record tells",
	"cancel-run-purge": "an end", "cancel-backfill": "an end",
	"accept-proposal": "the job's revisions tell", "decline-proposal": "the proposal tells",
	"drain-instance": "an order to a process", "undrain-instance": "an order to a process", "remove-instance": "an order to a process",
	"switch-tenant":   "a session",
	"delete-executor": "its jobs are deleted first, in the transaction with the entry",
}

// audited says what an operation needs to end well, beside what the matrix gives it.
type audited struct {
	before func(w *world, own objects)
	query  string
	body   func(w *world, own objects) any
}

func as(body map[string]any) func(*world, objects) any {
	return func(*world, objects) any { return body }
}

func calling(who, method, path string, body any) func(*world, objects) {
	return func(w *world, own objects) {
		w.call(who, method, fill(path, own, nil, -1), body, header{"If-Match": "*"})
	}
}

func jobOfShop(name string) func(*world, objects) any {
	return func(w *world, own objects) any {
		return jobBody(name, domain.Executor{ID: mustID[domain.ExecutorID](w.t, own["/executors/{id}"])})
	}
}

var auditedOperations = map[string]audited{
	"set-tenant-quotas": {body: as(map[string]any{"items": []any{map[string]any{"kind": "jobs", "limit": 7}}})},
	"set-script-policy": {body: as(map[string]any{"languages": []string{"shell"}})},
	"update-job":        {body: jobOfShop("changed")},
	"try-callback": {body: func(_ *world, own objects) any {
		return map[string]any{"callback": "reconcile", "executor": map[string]any{"id": own["/executors/{id}"]}}
	}},
	"create-job": {body: jobOfShop("second")},
	"put-job": {body: func(w *world, own objects) any {
		body := jobOfShop(own["/by-name/{name}"])(w, own).(map[string]any)
		body["timeout"] = "1m"
		return body
	}},
	"create-jobs": {body: func(w *world, own objects) any {
		return map[string]any{"items": []any{jobOfShop("a")(w, own), jobOfShop("b")(w, own)}}
	}},
	"create-user":       {body: as(map[string]any{"username": "new", "role": "viewer"})},
	"create-tenant":     {body: as(map[string]any{"name": "gamma"})},
	"create-script":     {body: as(scriptBody("s", "shell", "true", ""))},
	"purge-runs":        {body: as(map[string]any{"before": "2026-01-01T00:00:00Z"})},
	"create-invitation": {body: as(map[string]any{"username": "somebody", "role": "viewer"})},
	"create-denial":     {body: as(map[string]any{"serial": "ab02"})},
	"create-executor":   {body: as(map[string]any{"name": "second"})},
	"create-calendar":   {body: as(calendarBody("second", map[string]any{}))},
	"apply-documents":   {body: as(documentsBody(calendarDocument("second", map[string]any{})))},
	"create-api-key":    {body: as(map[string]any{"name": "k2", "role": "viewer"})},
	"update-user":       {body: as(map[string]any{"role": "operator"})},
	"restore-calendar":  {before: calling("acme/admin", "DELETE", "/calendars/{id}", nil)},
	"restore-script":    {before: calling("acme/admin", "DELETE", "/scripts/{id}", nil)},
	"restore-job":       {before: calling("acme/admin", "DELETE", "/jobs/{id}", nil)},
	"restore-executor":  {before: calling("acme/admin", "DELETE", "/executors/{id}?jobs=delete&instances=end", nil)},
	"restore-tenant": {before: func(w *world, own objects) {
		calling("platform", "POST", "/tenants/{id}/disable", map[string]any{})(w, own)
		calling("platform", "DELETE", "/tenants/{id}?name=acme", nil)(w, own)
	}},
	"enable-tenant":   {before: calling("platform", "POST", "/tenants/{id}/disable", map[string]any{})},
	"enable-executor": {before: calling("acme/admin", "POST", "/executors/{id}/disable", map[string]any{})},
	"delete-tenant":   {before: calling("platform", "POST", "/tenants/{id}/disable", map[string]any{}), query: "?name=acme"},
	"cancel-run": {before: func(w *world, own objects) {
		own["/runs/{id}"] = into[Run](w.call("acme/admin", "POST", fill("/jobs/{id}/run", own, nil, -1), map[string]any{}).is(201)).ID
	}},
	"remove-former-name":       {before: calling("acme/admin", "PATCH", "/executors/{id}", map[string]any{"name": "renamed"})},
	"end-tenant-maintenance":   {before: calling("acme/admin", "PUT", "/maintenance", map[string]any{"mode": "continue"})},
	"end-executor-maintenance": {before: calling("acme/admin", "PUT", "/executors/{id}/maintenance", map[string]any{"mode": "continue"})},
	"end-cluster-maintenance":  {before: calling("platform", "PUT", "/cluster/maintenance", map[string]any{"mode": "continue"})},
	"delete-executor":          {query: "?jobs=delete&instances=end"},
}
