package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// addOnRoutes add further routes, each from the file of its tests.
var addOnRoutes []func(*fakeServer, *http.ServeMux)

// fakeServer speaks the API contract, as far as the command line asks, about
// two jobs, one executor and the runs that tests start.
type fakeServer struct {
	url  string
	stop func() // as the end of the test does

	mu       sync.Mutex
	password string
	token    string // the access token in force
	cookie   int    // number of the refresh cookie in force
	renewed  int
	revision int
	state    string
	// Of the pause of close-day; pausedBy is kept by resume --mine.
	pausedBy, pauseNote string
	deleted             bool
	removed             []string
	accepted            bool
	runEnd              string            // state that new runs reach; never = they go on
	runs                map[string]string // id → state
	bodies              map[string]map[string]any
	queries             map[string]string
}

func newFakeServer(t *testing.T) *fakeServer {
	s := &fakeServer{
		password: "tower-bell-64", token: "jwt-0", revision: 3, state: "enabled", runEnd: "succeeded",
		runs: map[string]string{"70": "succeeded"}, bodies: map[string]map[string]any{}, queries: map[string]string{},
	}
	mux := http.NewServeMux()
	s.sessionRoutes(mux)
	s.jobRoutes(mux)
	s.fireRoutes(mux)
	s.runRoutes(mux)
	s.executorRoutes(mux)
	s.clusterRoutes(mux)
	s.maintenanceRoutes(mux)
	s.retentionRoutes(mux)
	s.refusalRoutes(mux)
	s.calendarRoutes(mux)
	for _, add := range addOnRoutes {
		add(s, mux)
	}
	s.backfillRoutes(mux)
	s.timerRoutes(mux)
	s.catalogueRoutes(mux)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	s.url, s.stop = server.URL, server.Close
	return s
}

// nextRunEnds sets the state that runs started from now on end in.
func (s *fakeServer) nextRunEnds(state string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.runEnd = state
}

// expire makes the access token in force a stale one.
func (s *fakeServer) expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.token = fmt.Sprintf("jwt-%d-later", s.cookie)
}

func (s *fakeServer) renewals() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.renewed
}

func (s *fakeServer) lastBody(route string) map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bodies[route]
}

func (s *fakeServer) lastQuery(route string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.queries[route]
}

func refuse(w http.ResponseWriter, status int, code, detail string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"status": status, "code": code, "detail": detail, "instance": "req-1"})
}

// refuseField is a 422 about one field.
func refuseField(w http.ResponseWriter, location, message, hint string) {
	refuseAt(w, 422, "validation_failed", location+": "+message, map[string]any{"location": location, "message": message, "hint": hint})
}

func refuseAt(w http.ResponseWriter, status int, code, detail string, item map[string]any) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"status": status, "code": code, "detail": detail, "errors": []any{item}})
}

// route registers a handler that runs under the lock, after the credentials
// were checked and the body was kept.
// locked lets f see or change what the server knows while it serves.
func (s *fakeServer) locked(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

func (s *fakeServer) route(mux *http.ServeMux, pattern string, handler func(w http.ResponseWriter, r *http.Request, body map[string]any)) {
	method, path, _ := strings.Cut(pattern, " ")
	mux.HandleFunc(method+" /api/v1"+path, func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		defer s.mu.Unlock()
		switch r.Header.Get("Authorization") {
		case "Bearer ck_good", "Bearer " + s.token:
		case "Bearer ck_bad":
			refuse(w, 401, "unauthenticated", "the API key is not valid")
			return
		default:
			refuse(w, 401, "token_expired", "the token has expired")
			return
		}
		var body map[string]any
		if len(raw) > 0 {
			if err := json.Unmarshal(raw, &body); err != nil {
				refuse(w, 400, "malformed_json", err.Error())
				return
			}
		}
		s.bodies[pattern], s.queries[pattern] = body, r.URL.RawQuery
		w.Header().Set("Content-Type", "application/json")
		handler(w, r, body)
	})
}

func (s *fakeServer) sessionRoutes(mux *http.ServeMux) {
	begin := func(w http.ResponseWriter) {
		s.cookie++
		s.token = fmt.Sprintf("jwt-%d", s.cookie)
		http.SetCookie(w, &http.Cookie{Name: "carillon_refresh", Value: fmt.Sprint(s.cookie), Path: "/api/v1/auth", HttpOnly: true})
		fmt.Fprintf(w, `{"accessToken":%q,"expiresAt":"2099-01-01T00:00:00.000Z","user":{"id":"1","username":"admin","role":"admin"},"tenant":{"id":"1","name":"default"}}`, s.token)
	}
	mux.HandleFunc("POST /api/v1/auth/login", func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		var body struct{ Username, Password string }
		if json.NewDecoder(r.Body).Decode(&body) != nil || body.Username != "admin" || body.Password != s.password {
			refuse(w, 401, "unauthenticated", "wrong user name or password")
			return
		}
		begin(w)
	})
	mux.HandleFunc("POST /api/v1/auth/refresh", func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if c, err := r.Cookie("carillon_refresh"); err != nil || c.Value != fmt.Sprint(s.cookie) {
			refuse(w, 401, "unauthenticated", "the session has ended")
			return
		}
		s.renewed++
		begin(w)
	})
	mux.HandleFunc("POST /api/v1/auth/logout", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) })
	s.route(mux, "POST /auth/password", func(w http.ResponseWriter, _ *http.Request, body map[string]any) {
		if body["current"] != s.password {
			refuse(w, 401, "unauthenticated", "wrong password")
			return
		}
		s.password = body["new"].(string)
		s.cookie++
		s.token = "none"
		http.SetCookie(w, &http.Cookie{Name: "carillon_refresh", Value: fmt.Sprint(s.cookie)})
		w.WriteHeader(204)
	})
	s.route(mux, "GET /me", func(w http.ResponseWriter, _ *http.Request, _ map[string]any) {
		fmt.Fprint(w, `{"user":{"id":"1","username":"admin","role":"admin"},"tenant":{"id":"1","name":"default"},"kind":"user"}`)
	})
}

// job is close-day (1) or broken (2).
func (s *fakeServer) job(id string) string {
	name := "close-day"
	if id == "2" {
		name = "broken"
	}
	return fmt.Sprintf(`{"id":%q,"name":%q,"description":"","labels":{},"handler":"close-day","input":{"day":"2026-11-20"},
		"schedule":{"kind":"cron","expr":"0 0 2 * * *","dialect":"seconds","zone":"Asia/Shanghai","text":{"en":"At 02:00","zh":"每天 02:00"}},
		"timeout":"5m","executor":{"id":"5","name":"shop"},"state":%q,"pauseNote":%q,"pausedBy":%q,"source":"console","revision":%d,
		"nextFireAt":"2026-11-21T18:00:00.000Z","neverFires":false,"lastRun":{"id":"70","state":"succeeded"},"executorOnline":1,
		"createdAt":"2026-11-01T00:00:00.000Z","updatedAt":"2026-11-01T00:00:00.000Z","createdBy":"admin","updatedBy":"admin"}`,
		id, name, s.state, s.pauseNote, s.pausedBy, s.revision)
}

func (s *fakeServer) jobRoutes(mux *http.ServeMux) {
	s.route(mux, "GET /jobs", func(w http.ResponseWriter, r *http.Request, _ map[string]any) {
		var items []string
		for id, name := range map[string]string{"1": "close-day", "2": "broken"} {
			if strings.Contains(name, r.URL.Query().Get("q")) && !(s.deleted && id == "1") {
				items = append(items, s.job(id))
			}
		}
		if len(items) == 2 && strings.Contains(items[0], `"broken"`) {
			items[0], items[1] = items[1], items[0]
		}
		fmt.Fprintf(w, `{"items":[%s],"nextCursor":null}`, strings.Join(items, ","))
	})
	s.route(mux, "GET /jobs/{id}", func(w http.ResponseWriter, r *http.Request, _ map[string]any) {
		if id := r.PathValue("id"); id == "1" || id == "2" {
			fmt.Fprint(w, s.job(id))
			return
		}
		refuse(w, 404, "not_found", "there is no job "+r.PathValue("id"))
	})
	s.route(mux, "POST /jobs", func(w http.ResponseWriter, _ *http.Request, body map[string]any) {
		expr, _ := body["schedule"].(map[string]any)["expr"].(string)
		if at := strings.Index(expr, "25"); at >= 0 {
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(422)
			fmt.Fprintf(w, `{"status":422,"code":"invalid_cron","detail":"body.schedule.expr: 25 is outside 0-23","errors":[
				{"location":"body.schedule.expr","message":"25 is outside 0-23","value":%q,"position":%d,"length":2}]}`, expr, at)
			return
		}
		executor, isObject := body["executor"].(map[string]any)
		switch {
		case !isObject:
			refuseAt(w, 422, "validation_failed", "body.executor: must be an object with fields", map[string]any{
				"location": "body.executor", "message": "must be an object with fields", "value": body["executor"],
			})
			return
		case executor["name"] == "gone":
			refuseAt(w, 404, "not_found", "body.executor.name: there is no such executor", map[string]any{
				"location": "body.executor.name", "message": "there is no such executor", "value": "gone",
			})
			return
		case body["handler"] == "xyzzy":
			const hint = "save with allowUnknownHandler=true if it comes later"
			message := `no instance of the executor "shop" has registered a handler "xyzzy"`
			refuseAt(w, 422, "unknown_handler", message+"; "+hint, map[string]any{"location": "body.handler", "message": message, "hint": hint})
			return
		}
		job := strings.Replace(s.job("1"), "close-day", body["name"].(string), 1)
		if expr == "0 0 31 2 *" {
			job = strings.NewReplacer(`"neverFires":false`, `"neverFires":true`, "0 0 2 * * *", expr).Replace(job)
		}
		w.WriteHeader(201)
		fmt.Fprint(w, job)
	})
	s.route(mux, "POST /jobs/batch", func(w http.ResponseWriter, _ *http.Request, body map[string]any) {
		items := []map[string]any{}
		for i, one := range body["items"].([]any) {
			name := one.(map[string]any)["name"].(string)
			item := map[string]any{"name": name, "status": 201, "id": fmt.Sprint(100 + i)}
			if name == "close-day" {
				item = map[string]any{"name": name, "status": 409, "problem": map[string]any{"status": 409, "code": "conflict", "detail": "there is a job named \"close-day\" already"}}
			}
			items = append(items, item)
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"items": items})
	})
	s.route(mux, "PUT /jobs/{id}", func(w http.ResponseWriter, r *http.Request, _ map[string]any) {
		if r.Header.Get("If-Match") != fmt.Sprintf(`"%d"`, s.revision) {
			refuse(w, 412, "revision_mismatch", "the job was changed meanwhile")
			return
		}
		s.revision++
		fmt.Fprint(w, s.job(r.PathValue("id")))
	})
	s.route(mux, "DELETE /jobs/{id}", func(w http.ResponseWriter, _ *http.Request, _ map[string]any) {
		s.deleted = true
		w.WriteHeader(204)
	})
	for action, state := range map[string]string{"pause": "paused", "resume": "enabled"} {
		s.route(mux, "POST /jobs/{id}/"+action, func(w http.ResponseWriter, r *http.Request, _ map[string]any) {
			if r.PathValue("id") == "2" {
				refuse(w, 500, "internal", "something went wrong")
				return
			}
			if r.URL.Query().Get("mine") != "true" || s.pausedBy == "" {
				s.state = state
			}
			fmt.Fprint(w, s.job("1"))
		})
	}
	s.route(mux, "GET /jobs/{id}/next-fires", func(w http.ResponseWriter, _ *http.Request, _ map[string]any) {
		fmt.Fprint(w, `{"fires":[{"at":"2026-11-21T18:00:00.000Z","zoned":"2026-11-22T02:00:00+08:00"},
			{"at":"2026-11-22T18:00:00.000Z","zoned":"2026-11-23T02:00:00+08:00","note":"dst_gap"}],"neverFires":false}`)
	})
	s.route(mux, "POST /jobs/{id}/run", func(w http.ResponseWriter, _ *http.Request, _ map[string]any) {
		id := fmt.Sprint(70 + len(s.runs))
		s.runs[id] = "due"
		w.WriteHeader(201)
		fmt.Fprint(w, run1(id, "due"))
	})
}

func run1(id, state string) string {
	message, failure := "", ""
	if state == "failed" { // as the engine tells it: the message holds the handler's own words
		message, failure = "attempt 1 of 1 failed: disk full", "disk full"
	}
	return fmt.Sprintf(`{"id":%q,"jobId":"1","jobName":"close-day","executor":{"id":"5","name":"shop"},"handler":"close-day","cause":"manual",
		"fireAt":"2026-11-21T04:00:00.000Z","state":%q,"reason":"","message":%q,"error":%q,"attempt":1,"maxAttempts":1,"instance":null,
		"latenessMs":3,"durationMs":4,"input":null,"output":{"rows":3},"attempts":[],
		"progress":{"percent":42.5,"message":"page 17","updatedAt":"2026-11-21T04:00:02.000Z"},
		"steps":[{"name":"charge","output":{"receipt":"r1"},"storedAt":"2026-11-21T04:00:01.000Z"}]}`, id, state, message, failure)
}

func (s *fakeServer) runRoutes(mux *http.ServeMux) {
	s.route(mux, "GET /runs", func(w http.ResponseWriter, r *http.Request, _ map[string]any) {
		if r.URL.Query().Has("fingerprint") {
			fmt.Fprintf(w, `{"items":[%s],"nextCursor":null}`, run1("70", "failed"))
			return
		}
		fmt.Fprint(w, `{"items":[],"nextCursor":null}`)
	})
	s.route(mux, "GET /runs/{id}", func(w http.ResponseWriter, r *http.Request, _ map[string]any) {
		id := r.PathValue("id")
		state, ok := s.runs[id]
		if !ok {
			refuse(w, 404, "not_found", "there is no run "+id)
			return
		}
		fmt.Fprint(w, run1(id, state))
		// The next question finds it one step further.
		switch {
		case state == "due":
			s.runs[id] = "running"
		case state == "running" && s.runEnd != "never":
			s.runs[id] = s.runEnd
		}
	})
	s.route(mux, "POST /runs/{id}/cancel", func(w http.ResponseWriter, r *http.Request, _ map[string]any) {
		refuse(w, 409, "already_finished", "run "+r.PathValue("id")+" is succeeded already")
	})
	lines := []string{
		`{"n":1,"at":"2026-11-21T04:00:00.001Z","attempt":1,"level":"INFO","msg":"begin","attrs":{"day":"2026-11-20","rows":3}}`,
		`{"n":2,"at":"2026-11-21T04:00:00.002Z","attempt":1,"level":"WARN","msg":"odd \u001b[31m","attrs":{"name":"a b"}}`,
		`{"n":3,"at":"2026-11-21T04:00:00.003Z","attempt":1,"level":"INFO","msg":"end"}`,
	}
	// One line per question; the first says complete too early, as a server may
	// that has more lines than fit into one answer.
	explanation := `{"run":null,"summary":{"en":"It ran and succeeded; it started 7s late.","zh":"运行成功，延迟 7s 开始。"},"party":"admin",
		"steps":[{"at":"2026-11-21T02:00:00.000Z","code":"planned","text":{"en":"Its fire time.","zh":"计划触发时间。"}}],
		"instances":[{"instance":{"id":"9","name":"till-1"},"verdict":"chosen","text":{"en":"It was chosen.","zh":"被选中。"}}],"stamps":null}`
	for _, path := range []string{"GET /runs/{id}/explain", "GET /jobs/{id}/explain"} {
		s.route(mux, path, func(w http.ResponseWriter, _ *http.Request, _ map[string]any) { fmt.Fprint(w, explanation) })
	}
	s.route(mux, "GET /runs/{id}/log", func(w http.ResponseWriter, r *http.Request, _ map[string]any) {
		var after int
		_, _ = fmt.Sscan(r.URL.Query().Get("after"), &after)
		var page string
		if after < len(lines) {
			page = lines[after]
			after++
		}
		fmt.Fprintf(w, `{"lines":[%s],"lastLine":3,"next":%d,"complete":true,"truncated":false,"counts":{"written":8,"kept":3,"missing":[{"lines":5,"why":"executor"}]}}`, page, after)
	})
}

func (s *fakeServer) executorRoutes(mux *http.ServeMux) {
	const shop = `"id":"5","name":"shop","description":"","instancesOnline":1,"instancesTotal":1,"createdAt":"2026-11-01T00:00:00.000Z"`
	s.route(mux, "GET /executors", func(w http.ResponseWriter, r *http.Request, _ map[string]any) {
		item := ""
		if strings.Contains("shop", r.URL.Query().Get("q")) {
			item = "{" + shop + `,"handlers":1}`
		}
		fmt.Fprintf(w, `{"items":[%s],"nextCursor":null}`, item)
	})
	s.route(mux, "GET /executors/{id}", func(w http.ResponseWriter, _ *http.Request, _ map[string]any) {
		fmt.Fprint(w, "{"+shop+`,"handlers":[{"name":"close-day","description":"","idempotent":true,"instancesOnline":1,"lastSeenAt":"2026-11-01T00:00:00.000Z"}],
			"refusedDeclarations":[{"job":"nightly","code":"conflict","message":"the job is another executor's","version":"1.4.0","refusedAt":"2026-11-01T00:00:00.000Z"}]}`)
	})
	s.route(mux, "POST /executors", func(w http.ResponseWriter, _ *http.Request, body map[string]any) {
		if body["name"] == "secret" {
			refuse(w, 403, "permission_denied", "the role viewer may not edit")
			return
		}
		if body["name"] == "scripts" {
			refuse(w, 403, "policy_refused", "scripts in shell are off for this tenant")
			return
		}
		refuse(w, 409, "conflict", "the executor exists already")
	})
	s.route(mux, "GET /executors/{id}/instances", func(w http.ResponseWriter, _ *http.Request, _ map[string]any) {
		fmt.Fprint(w, `{"items":[{"id":"9","name":"pod-1","host":"h","pid":1,"state":"online","slots":8,"running":1,"lastHeartbeatAt":"2026-11-21T04:00:00.000Z"}],"nextCursor":null}`)
	})
	s.route(mux, "GET /instances", func(w http.ResponseWriter, _ *http.Request, _ map[string]any) {
		fmt.Fprint(w, `{"items":[{"executorId":"5","executorName":"shop","instance":{"id":"9","name":"pod-1","host":"web-1","state":"online","slots":8,"running":1}},`+
			`{"executorId":"5","executorName":"shop","instance":{"id":"8","name":"pod-0","host":"web-2","state":"gone","goneAt":"2026-11-21T04:00:00.000Z","goneReason":"its lease ran out"}}],"nextCursor":null}`)
	})
	limit := func(w http.ResponseWriter, kind string, most any) {
		fmt.Fprintf(w, `{"kind":%q,"subject":{"id":"5","name":"shop"},"maxRunning":%v,"running":2,"waiting":7}`, kind, most)
	}
	s.route(mux, "GET /limits", func(w http.ResponseWriter, _ *http.Request, _ map[string]any) {
		fmt.Fprint(w, `{"items":[`)
		limit(w, "executor", 2)
		fmt.Fprint(w, `],"nextCursor":null}`)
	})
	s.route(mux, "PUT /executors/{id}/limit", func(w http.ResponseWriter, _ *http.Request, body map[string]any) {
		limit(w, "executor", body["maxRunning"])
	})
	s.route(mux, "PUT /tenants/{id}/limit", func(w http.ResponseWriter, r *http.Request, body map[string]any) {
		if r.PathValue("id") != "5" {
			refuse(w, 404, "not_found", "there is no tenant "+r.PathValue("id"))
			return
		}
		limit(w, "tenant", body["maxRunning"])
	})
	quotas := func(w http.ResponseWriter, jobs any) {
		fmt.Fprintf(w, `{"items":[{"kind":"jobs","limit":%v,"used":12,"default":false},{"kind":"users","limit":1000,"used":3,"default":true}],"nextCursor":null}`, jobs)
	}
	s.route(mux, "GET /quotas", func(w http.ResponseWriter, _ *http.Request, _ map[string]any) { quotas(w, 20) })
	s.route(mux, "GET /tenants/{id}/quotas", func(w http.ResponseWriter, _ *http.Request, _ map[string]any) { quotas(w, 30) })
	s.route(mux, "PUT /tenants/{id}/quotas", func(w http.ResponseWriter, r *http.Request, body map[string]any) {
		if r.PathValue("id") != "5" {
			refuse(w, 403, "permission_denied", "only a platform administrator may do this")
			return
		}
		item, _ := body["items"].([]any)[0].(map[string]any)
		quotas(w, item["limit"])
	})
	const token = `"id":"12","name":"shop","prefix":"cjt_fr","createdAt":"2026-11-01T00:00:00.000Z","createdBy":"admin","expiresAt":null,"maxUses":null,"uses":0`
	s.route(mux, "POST /executors/{id}/join-tokens", func(w http.ResponseWriter, _ *http.Request, _ map[string]any) {
		w.WriteHeader(201)
		fmt.Fprint(w, "{"+token+`,"secret":"cjt_fresh"}`)
	})
	const key = `"id":"81","name":"deploys","prefix":"ck_fr","role":"editor","createdAt":"2026-11-01T00:00:00.000Z","createdBy":"admin","lastUsedAt":null,"expiresAt":null,"executors":["shop"],"callHandlers":["mail/send"]`
	s.route(mux, "POST /api-keys", func(w http.ResponseWriter, _ *http.Request, _ map[string]any) {
		w.WriteHeader(201)
		fmt.Fprint(w, "{"+key+`,"secret":"ck_fresh"}`)
	})
	s.route(mux, "GET /api-keys", func(w http.ResponseWriter, _ *http.Request, _ map[string]any) {
		fmt.Fprint(w, `{"items":[{`+key+`}],"nextCursor":null}`)
	})
	s.route(mux, "DELETE /api-keys/{id}", func(w http.ResponseWriter, r *http.Request, _ map[string]any) {
		if r.PathValue("id") != "81" {
			refuse(w, 404, "not_found", "there is no key "+r.PathValue("id"))
			return
		}
		w.WriteHeader(204)
	})
	const invited = `"id":"91","role":"operator","invitedBy":"admin","createdAt":"2026-11-01T00:00:00.000Z","expiresAt":"2026-11-08T00:00:00.000Z"`
	s.route(mux, "POST /invitations", func(w http.ResponseWriter, _ *http.Request, _ map[string]any) {
		w.WriteHeader(201)
		fmt.Fprint(w, `{"username":"paula",`+invited+"}")
	})
	s.route(mux, "GET /invitations", func(w http.ResponseWriter, _ *http.Request, _ map[string]any) {
		fmt.Fprint(w, `{"items":[{"username":"paula",`+invited+`}],"nextCursor":null}`)
	})
	s.route(mux, "GET /me/invitations", func(w http.ResponseWriter, _ *http.Request, _ map[string]any) {
		fmt.Fprint(w, `{"items":[{"tenant":{"id":"3","name":"reports"},`+invited+`}],"nextCursor":null}`)
	})
	for _, route := range []string{"DELETE /invitations/{id}", "POST /me/invitations/{id}/accept", "POST /me/invitations/{id}/decline"} {
		s.route(mux, route, func(w http.ResponseWriter, r *http.Request, _ map[string]any) {
			if r.PathValue("id") != "91" {
				refuse(w, 404, "not_found", "there is no invitation "+r.PathValue("id"))
				return
			}
			w.WriteHeader(204)
		})
	}
	const denial = `{"id":"31","kind":"certificate","subject":"5e","instance":"","reason":"stolen","createdAt":"2026-11-01T00:00:00.000Z","createdBy":"admin"}`
	s.route(mux, "POST /executors/{id}/denials", func(w http.ResponseWriter, _ *http.Request, _ map[string]any) {
		w.WriteHeader(201)
		fmt.Fprint(w, denial)
	})
	s.route(mux, "GET /executors/{id}/denials", func(w http.ResponseWriter, _ *http.Request, _ map[string]any) {
		fmt.Fprint(w, `{"items":[`+denial+`],"nextCursor":null}`)
	})
	s.route(mux, "DELETE /executors/{id}/denials/{denial}", func(w http.ResponseWriter, _ *http.Request, _ map[string]any) { w.WriteHeader(204) })
	s.route(mux, "GET /executors/{id}/join-tokens", func(w http.ResponseWriter, _ *http.Request, _ map[string]any) {
		fmt.Fprint(w, `{"items":[{`+token+`}],"nextCursor":null}`)
	})
	s.route(mux, "DELETE /executors/{id}/join-tokens/{token}", func(w http.ResponseWriter, r *http.Request, _ map[string]any) {
		if r.PathValue("token") != "12" {
			refuse(w, 404, "not_found", "there is no token "+r.PathValue("token"))
			return
		}
		w.WriteHeader(204)
	})
}
