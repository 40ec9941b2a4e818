package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// calendarRoutes know one calendar, cn-holidays (3), which a job uses.
func (s *fakeServer) calendarRoutes(mux *http.ServeMux) {
	calendar := func(name string) string {
		id := "3"
		if name == "new" {
			id = "4"
		}
		return fmt.Sprintf(`{"apiVersion":"carillon/v1","kind":"Calendar","id":%q,"name":%q,"spec":{"zone":"Asia/Shanghai","weekend":["SAT","SUN"],"holidays":[{"date":"2026-10-01"},{"date":"2026-10-02"}],
			"makeUpDays":[{"date":"2026-10-10"}]},"status":{"holidays":2,"makeUpDays":1,"blackouts":0},"version":%d,"createdAt":"2026-11-01T00:00:00.000Z","updatedAt":"2026-11-01T00:00:00.000Z",
			"createdBy":"admin","updatedBy":"admin"}`, id, name, s.revision)
	}
	checked := func(w http.ResponseWriter, body map[string]any) bool {
		spec, _ := body["spec"].(map[string]any)
		days, _ := spec["holidays"].([]any)
		for i, day := range days {
			if day == "2026-02-30" {
				w.Header().Set("Content-Type", "application/problem+json")
				w.WriteHeader(422)
				fmt.Fprintf(w, `{"status":422,"code":"validation_failed","detail":"one field is wrong","errors":[
					{"location":"body.spec.holidays[%d]","message":"no such day","value":"2026-02-30"}]}`, i)
				return false
			}
		}
		return true
	}
	s.route(mux, "GET /calendars", func(w http.ResponseWriter, _ *http.Request, _ map[string]any) {
		fmt.Fprintf(w, `{"items":[%s],"nextCursor":null}`, calendar("cn-holidays"))
	})
	s.route(mux, "GET /calendars/{id}", func(w http.ResponseWriter, r *http.Request, _ map[string]any) {
		if word := r.PathValue("id"); word != "3" && word != "cn-holidays" {
			refuse(w, 404, "not_found", "there is no calendar "+r.PathValue("id"))
			return
		}
		fmt.Fprint(w, strings.TrimSuffix(calendar("cn-holidays"), "}")+`,"usedBy":{"count":25,"more":false,"first":[{"kind":"Job","id":"1","name":"close-day"}]}}`)
	})
	s.route(mux, "POST /calendars", func(w http.ResponseWriter, _ *http.Request, body map[string]any) {
		if checked(w, body) {
			w.WriteHeader(201)
			fmt.Fprint(w, calendar(body["name"].(string)))
		}
	})
	s.route(mux, "PUT /calendars/{id}", func(w http.ResponseWriter, r *http.Request, body map[string]any) {
		if r.Header.Get("If-Match") != fmt.Sprintf(`"%d"`, s.revision) {
			refuse(w, 412, "revision_mismatch", "the calendar was changed meanwhile")
		} else if checked(w, body) {
			s.revision++
			fmt.Fprint(w, calendar("cn-holidays"))
		}
	})
	s.route(mux, "POST /calendars/{id}/import", func(w http.ResponseWriter, _ *http.Request, body map[string]any) {
		if !strings.HasPrefix(body["ical"].(string), "BEGIN:VCALENDAR") {
			refuse(w, 422, "validation_failed", "line 1: no iCalendar file")
			return
		}
		s.revision++
		fmt.Fprint(w, calendar("cn-holidays"))
	})
	s.route(mux, "GET /calendars/{id}/versions", func(w http.ResponseWriter, _ *http.Request, _ map[string]any) {
		fmt.Fprint(w, `{"items":[{"version":2,"createdAt":"2026-11-02T00:00:00.000Z","createdBy":"ann"},{"version":1,"createdAt":"2026-11-01T00:00:00.000Z","createdBy":"admin"}],"nextCursor":null}`)
	})
	s.route(mux, "GET /deleted-calendars", func(w http.ResponseWriter, _ *http.Request, _ map[string]any) {
		fmt.Fprint(w, `{"items":[{"id":"7","name":"old","version":3,"deletedAt":"2026-11-02T00:00:00.000Z","deletedBy":"ann"}],"nextCursor":null}`)
	})
	s.route(mux, "POST /calendars/{id}/restore", func(w http.ResponseWriter, _ *http.Request, _ map[string]any) {
		fmt.Fprint(w, calendar("old"))
	})
	s.route(mux, "DELETE /calendars/{id}", func(w http.ResponseWriter, r *http.Request, _ map[string]any) {
		if r.PathValue("id") == "4" {
			s.removed = append(s.removed, "calendar 4")
			w.WriteHeader(204)
			return
		}
		refuse(w, 409, "conflict", "the job close-day uses it")
	})
}

// A deleted calendar is listed, found by its name and brought back.
func TestCalendarRestore(t *testing.T) {
	term := keyed(t, newFakeServer(t))
	r := term.run("calendar", "get", "cn-holidays")
	require.Contains(t, r.stderr, "Used by Job close-day, and 24 others.")
	r = term.run("calendar", "restore", "gone")
	require.Equal(t, 3, r.code)
	require.Contains(t, r.stderr, "there is no deleted calendar \"gone\"; see: carillon calendar list --deleted")
	r = term.run("calendar", "list", "--deleted")
	require.Equal(t, 0, r.code, r.stderr)
	require.Contains(t, spaced(r.stdout), "7 old 3")
	require.Contains(t, r.stdout, "ann")
	r = term.run("calendar", "restore", "old")
	require.Equal(t, 0, r.code, r.stderr)
	require.Contains(t, r.stderr, "Calendar old is at version")
	require.Equal(t, 3, term.run("calendar", "restore", "other").code)
}

func spaced(s string) string { return strings.Join(strings.Fields(s), " ") }

func TestCalendarRead(t *testing.T) {
	term := keyed(t, newFakeServer(t))
	r := term.run("calendar", "list")
	require.Equal(t, 0, r.code, r.stderr)
	lines := strings.Split(strings.TrimSpace(r.stdout), "\n")
	require.Len(t, lines, 2)
	require.True(t, strings.HasPrefix(spaced(lines[0]), "NAME ZONE HOLIDAYS MAKE-UP BLACKOUTS UPDATED"), lines[0])
	require.True(t, strings.HasPrefix(spaced(lines[1]), "cn-holidays Asia/Shanghai 2 1 0"), lines[1])

	r = term.run("calendar", "get", "cn-holidays", "-o", "json")
	require.Equal(t, 0, r.code, r.stderr)
	var c struct {
		Spec struct{ Holidays []struct{ Date string } }
	}
	require.NoError(t, json.Unmarshal([]byte(r.stdout), &c))
	require.Equal(t, []struct{ Date string }{{"2026-10-01"}, {"2026-10-02"}}, c.Spec.Holidays)
	require.Equal(t, 0, term.run("calendar", "get", "3").code, "by id too")

	r = term.run("calendar", "get", "cn-holiday")
	require.Equal(t, 3, r.code)
	require.Contains(t, r.stderr, "cn-holidays", "what is near is named")
	require.Equal(t, 3, term.run("calendar", "get", "99").code)

	r = term.run("calendar", "versions", "cn-holidays")
	require.Equal(t, 0, r.code, r.stderr)
	require.Equal(t, "2 2026-11-02", spaced(r.stdout)[strings.Index(spaced(r.stdout), "2 2026"):][:12])
	require.Contains(t, r.stdout, "ann")
	r = term.run("calendar", "versions", "cn-holidays", "-o", "name")
	require.Equal(t, "2\n1\n", r.stdout)
}

// A calendar can be got, edited and put back.
func TestCalendarApply(t *testing.T) {
	server := newFakeServer(t)
	term := keyed(t, server)
	got := term.run("calendar", "get", "cn-holidays", "-o", "yaml")
	require.Equal(t, 0, got.code, got.stderr)
	r := term.pipe(got.stdout, "calendar", "apply", "-f", "-")
	require.Equal(t, 0, r.code, r.stderr)
	require.Contains(t, r.stderr, "is at version 4")
	sent := server.lastBody("PUT /calendars/{id}")
	require.Equal(t, []any{map[string]any{"date": "2026-10-01"}, map[string]any{"date": "2026-10-02"}}, sent["spec"].(map[string]any)["holidays"])
	require.NotContains(t, sent, "version")

	r = term.pipe("name: de-holidays\nspec: {holidays: [2026-10-03]}\n", "calendar", "apply", "-f", "-", "-o", "json")
	require.Equal(t, 0, r.code, r.stderr)
	require.Contains(t, r.stdout, `"name": "de-holidays"`)

	r = term.pipe("name: cn-holidays\nspec: {holidays: [\"2026-10-01\", \"2026-02-30\"]}\n", "calendar", "apply", "-f", "-")
	require.Equal(t, 1, r.code)
	require.Contains(t, r.stderr, "holidays[1]", "the place of the mistake")
	require.Contains(t, r.stderr, "no such day")

	for text, want := range map[string]string{
		"name: x\nholiday: []\n": `a calendar has no field "holiday"`,
		"- x":                    "want an object with fields",
		"name: [":                "-: ",
	} {
		r = term.pipe(text, "calendar", "apply", "-f", "-")
		require.Equal(t, 2, r.code, text)
		require.Contains(t, r.stderr, want)
	}
	require.Equal(t, 2, term.run("calendar", "apply").code, "no file")
	require.NotEqual(t, 0, term.run("calendar", "apply", "-f", "/no/such/file").code)
}

func TestCalendarImportAndDelete(t *testing.T) {
	server := newFakeServer(t)
	term := keyed(t, server)
	r := term.pipe("BEGIN:VCALENDAR\nEND:VCALENDAR\n", "calendar", "import", "cn-holidays", "-f", "-", "--as", "blackouts", "--replace")
	require.Equal(t, 0, r.code, r.stderr)
	require.Equal(t, "blackouts", server.lastBody("POST /calendars/{id}/import")["as"])
	require.Equal(t, true, server.lastBody("POST /calendars/{id}/import")["replace"])
	require.Nil(t, server.lastBody("POST /calendars"))
	r = term.pipe("BEGIN:VCALENDAR\nEND:VCALENDAR\n", "calendar", "import", "new", "-f", "-")
	require.Equal(t, 0, r.code, r.stderr)
	require.Equal(t, "new", server.lastBody("POST /calendars")["name"], "it is made when there is none")
	require.Empty(t, server.removed)
	r = term.pipe("hello", "calendar", "import", "new", "-f", "-")
	require.Equal(t, 1, r.code)
	require.Contains(t, r.stderr, "no iCalendar file")
	require.Equal(t, []string{"calendar 4"}, server.removed, "an empty one is not left behind")
	r = term.pipe("hello", "calendar", "import", "cn-holidays", "-f", "-")
	require.Equal(t, 1, r.code)
	require.Contains(t, r.stderr, "line 1")
	require.Equal(t, 2, term.run("calendar", "import", "cn-holidays").code, "no file")

	r = term.run("calendar", "delete", "cn-holidays")
	require.Equal(t, 2, r.code)
	require.Contains(t, r.stderr, "--yes")
	r = term.run("calendar", "delete", "cn-holidays", "--yes")
	require.Equal(t, 5, r.code)
	require.Contains(t, r.stderr, "close-day uses it")
	require.Equal(t, 3, term.run("calendar", "rm", "none", "--yes").code)
}
