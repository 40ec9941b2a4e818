package deptest_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/internal/deptest"
)

// A made-up house: nouns at the bottom, two rooms side by side, one of them
// with a smaller room inside, and wiring on top.
var house = deptest.Rules{
	Rooms: []deptest.Room{
		{Path: "nouns", Why: "pure"},
		{Path: "left", May: []string{"nouns"}, Why: "side by side"},
		{Path: "right", May: []string{"nouns"}, Why: "side by side"},
		{Path: "right/inner", May: []string{"right"}, Why: "inner sees right only"},
		{Path: "top", May: []string{"nouns", "left", "right", "right/inner"}, Why: "wiring"},
		{Path: "sdk", Why: "no server"},
		{Path: "sdk/extra", May: []string{"sdk"}, Why: "sees sdk only"},
		{Path: "rig", May: []string{"top"}, Why: "measures"},
		{Path: "start", May: []string{"rig", "top"}, Why: "starts"},
	},
	Machines: []string{"rig"},
	Libraries: []deptest.Library{
		{Path: "example.org/web", Rooms: []string{"left"}, Why: "web is left"},
		{Path: "orm.io", Rooms: []string{"right/inner"}, Why: "orm is inner"},
	},
	Closed: []deptest.Closed{
		{Path: "sdk", May: []string{"example.org/mux"}, Why: "users inherit it"},
		{Path: "sdk/extra", May: []string{"example.org/mux", "example.org/extra"}, Why: "more is inherited"},
	},
}

const m = deptest.Module + "/"

func TestCheck(t *testing.T) {
	for _, test := range []struct {
		name     string
		packages []deptest.Package
		want     []string
	}{
		{"what the table allows", []deptest.Package{
			{ImportPath: m + "nouns", Imports: []string{"fmt"}},
			{ImportPath: m + "left", Imports: []string{m + "nouns", m + "left/detail", "example.org/web/v2/x"}},
			{ImportPath: m + "left/detail", Imports: []string{m + "left"}},
			{ImportPath: m + "right/inner/deep", Imports: []string{m + "right", "orm.io/orm"}},
			{ImportPath: m + "top", Imports: []string{m + "nouns", m + "left", m + "right/inner"}},
		}, nil},
		{"sideways", []deptest.Package{{ImportPath: m + "left", Imports: []string{m + "right"}}},
			[]string{m + "left must not import " + m + "right: side by side"}},
		{"upwards", []deptest.Package{{ImportPath: m + "nouns", Imports: []string{m + "left/detail"}}},
			[]string{m + "nouns must not import " + m + "left/detail: pure"}},
		{"the smaller room inside has rules of its own", []deptest.Package{
			{ImportPath: m + "right", Imports: []string{m + "right/inner", m + "nouns"}},
			{ImportPath: m + "right/inner", Imports: []string{m + "nouns"}},
		}, []string{
			m + "right must not import " + m + "right/inner: side by side",
			m + "right/inner must not import " + m + "nouns: inner sees right only",
		}},
		{"a name that only begins like a room", []deptest.Package{{ImportPath: m + "leftover"}},
			[]string{m + "leftover belongs to no room: add it to internal/deptest/rules.go"}},
		{"a library in the wrong room", []deptest.Package{
			{ImportPath: m + "right", Imports: []string{"example.org/web", "example.org/webbing", "orm.io/orm"}},
		}, []string{
			m + "right must not import example.org/web: web is left",
			m + "right must not import orm.io/orm: orm is inner",
		}},
		{"a library by a library", []deptest.Package{
			{ImportPath: "example.org/other", Imports: []string{"example.org/web", m + "nouns"}},
		}, nil},
		{"inherited through others", []deptest.Package{
			{ImportPath: m + "sdk", Imports: []string{"net", "example.org/mux"}},
			{ImportPath: "net", Standard: true, Imports: []string{"vendor/golang.org/x/net"}},
			{ImportPath: "example.org/mux", Imports: []string{"example.org/log/slim"}},
			{ImportPath: "example.org/log/slim", Imports: []string{"example.org/log"}},
		}, []string{"sdk must not inherit example.org/log/slim: users inherit it"}},
		{"a module below with rules of its own", []deptest.Package{
			{ImportPath: m + "sdk/extra", Imports: []string{"example.org/extra"}}, {ImportPath: "example.org/extra"},
		}, nil},
		{"which the one above must not use", []deptest.Package{
			{ImportPath: m + "sdk", Imports: []string{m + "sdk/extra"}},
			{ImportPath: m + "sdk/extra", Imports: []string{"example.org/extra"}}, {ImportPath: "example.org/extra"},
		}, []string{m + "sdk must not import " + m + "sdk/extra: no server", "sdk must not inherit example.org/extra: users inherit it"}},
		{"a machine of tests by another", []deptest.Package{{ImportPath: m + "rig/one", Imports: []string{m + "rig/two", m + "top"}}}, nil},
		{"a machine of tests by what users get, whatever its room may", []deptest.Package{{ImportPath: m + "start", Imports: []string{m + "rig/one"}}},
			[]string{m + "start must not import " + m + "rig/one: only tests and measurements run it, and users would get it"}},
		{"a server seen by the SDK", []deptest.Package{{ImportPath: m + "sdk/run", Imports: []string{m + "top"}}},
			[]string{m + "sdk/run must not import " + m + "top: no server"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			require.Equal(t, test.want, deptest.Check(test.packages, house))
		})
	}
}

// The rules of today, on imports that must never be.
func TestCarillonForbids(t *testing.T) {
	for from, to := range map[string]string{
		"executor-sdk":                        m + "admin",
		"executor-sdk/internal/session":       m + "admin/internal/domain",
		"schedule":                            m + "admin/internal/domain",
		"admin/internal/domain":               m + "schedule",
		"admin/internal/dispatch":             m + "admin/internal/gateway",
		"admin/internal/gateway":              m + "admin/internal/completer",
		"admin/internal/store":                m + "admin/internal/store/gormstore",
		"admin/internal/store/storetest":      m + "internal/testenv",
		"admin/internal/api":                  "gorm.io/gorm",
		"admin/internal/addon/alerting/route": "github.com/gin-gonic/gin",
		"admin/internal/api/timer":            m + "admin/internal/api",
		"admin/internal/scheduler":            "github.com/go-co-op/gocron/v2",
		"admin":                               "github.com/gin-gonic/gin",
		"cmd/carillon":                        m + "admin/internal/store/gormstore",
		"cmd/carillon/internal/command/job":   m + "admin/tools/bench",
		"admin/internal/completer":            m + "admin/tools/sim",
		"admin/verify":                        m + "internal/testenv/lab",
		"executor-sdk/proxy":                  m + "executor-sdk/simulate",
		"web-ui":                              "github.com/danielgtaylor/huma/v2",
	} {
		t.Run(from, func(t *testing.T) {
			packages := []deptest.Package{{ImportPath: m + from, Imports: []string{to}}}
			require.Len(t, deptest.Check(packages, deptest.Carillon()), 1, "%s imports %s", from, to)
		})
	}
}
