package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/internal/testenv/lab"
)

// serverWithShop is a server with an executor, and a shell that is logged in there.
func serverWithShop(t *testing.T) *terminal {
	t.Helper()
	dir := t.TempDir()
	fleet, err := lab.NewFleet(lab.Options{Dir: dir, Binary: program, DSN: func(int) string { return "sqlite:" + filepath.Join(dir, "carillon.db") }})
	require.NoError(t, err)
	t.Cleanup(fleet.Close)
	node, err := fleet.AddAdmin(t.Context())
	require.NoError(t, err)
	term := newTerminal(t, "ZONE=Asia/Shanghai")
	r := term.pipe(fleet.Password+"\n", "login", "--url", node.API.Base, "--username", "admin", "--password-stdin")
	require.Equal(t, 0, r.code, r.stderr)
	_, _, err = node.API.MakeExecutor(t.Context(), "shop")
	require.NoError(t, err)
	return term
}

const shopDocuments = `
kind: Job
name: close-day
labels: {team: payments}
spec:
  executor: {name: shop}
  handler: close-day
  input: {shop: 12345678901234567890}
  schedule: {kind: cron, expr: "${{ minute }} 2 * * *", zone: "${{ env:ZONE }}", calendars: [{name: cn}]}
---
kind: Calendar
name: cn
spec: {holidays: [{date: 2026-10-01}]}
---
kind: Job
name: report
spec: {executor: {name: shop}, handler: report, schedule: {kind: none}}
`

// Jobs and a calendar go from one server to another, are pruned there, and are deleted.
func TestDocumentsGoFromServerToServer(t *testing.T) {
	staging, production := serverWithShop(t), serverWithShop(t)
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	shop, values := file("shop.yaml", shopDocuments), file("values.yaml", "minute: 30\n")
	r := staging.run("plan", "-f", shop, "--values", values)
	require.Equal(t, 1, r.code, r.stderr)
	require.Contains(t, r.stderr, "+ Job close-day")
	require.Contains(t, r.stderr, "next fires: none → ")
	require.Contains(t, r.stderr, `warning: the executor "shop" has no instance online`)
	r = staging.run("apply", "-f", shop, "--values", values, "--yes", "--set", "shop")
	require.Equal(t, 0, r.code, r.stderr)
	require.Contains(t, r.stderr, "+3 ~0 -0 =0")
	r = staging.run("plan", "-f", shop, "--values", values, "--set", "shop")
	require.Equal(t, 0, r.code)
	require.NotContains(t, r.stderr, "warning: ")
	r = staging.run("plan", "-f", shop, "--values", file("more.yaml", "minute: 30\nzoen: UTC\n"), "--set", "shpo")
	require.Contains(t, r.stderr, `warning: --set shpo: no document belongs to the set yet; did you mean "shop"?`)
	require.Contains(t, r.stderr, "3 documents join the set.")
	require.Regexp(t, `warning: \S+more.yaml:2: no document uses the value "zoen"`, r.stderr)
	r = staging.run("job", "fires", "--executor", "shpo")
	require.Equal(t, 3, r.code, r.stderr)
	require.Contains(t, r.stderr, `there is no executor "shpo"; did you mean "shop"?`)
	r = staging.run("job", "list", "-l", "team in payments")
	require.Equal(t, 2, r.code, r.stderr)
	require.Contains(t, r.stderr, "hint: terms are team=pay, tier in (gold, silver)")

	r = staging.run("job", "list", "-o", "yaml")
	require.Equal(t, 0, r.code)
	require.Contains(t, r.stderr, "carillon export Job")
	require.Empty(t, staging.run("job", "list", "-o", "json").stderr)
	exported := staging.run("export", "Calendar", "Job")
	require.Equal(t, 0, exported.code, exported.stderr)
	require.Contains(t, exported.stdout, "12345678901234567890")
	asJSON := staging.run("export", "Calendar", "Job", "-o", "json")
	require.True(t, json.Valid([]byte(asJSON.stdout)), asJSON.stdout)
	require.Equal(t, 0, staging.pipe(asJSON.stdout, "plan", "-f", "-").code)
	r = staging.run("job", "set-owner", "", "close-day", "--yes")
	require.Equal(t, 2, r.code)
	require.Contains(t, r.stderr, "take the owner away with --clear")
	r = staging.pipe(exported.stdout, "plan", "-f", "-")
	require.Equal(t, 0, r.code, r.stdout+r.stderr)

	stored := strings.ReplaceAll(exported.stdout, "Asia/Shanghai", "${{ zone }}")
	zone := file("production.yaml", "zone: Europe/Berlin\n")
	r = production.pipe(stored, "apply", "-f", "-", "--values", zone, "--yes", "--set", "shop")
	require.Equal(t, 0, r.code, r.stderr)
	require.Contains(t, production.run("job", "get", "close-day", "-o", "json").stdout, "Europe/Berlin")

	// A whole tenant: an executor comes before its jobs, and nothing differs afterwards.
	whole := staging.run("export", "--whole")
	require.Equal(t, 0, whole.code, whole.stderr)
	require.Regexp(t, `^---\napiVersion: carillon/v1\nkind: Tenant\n`, whole.stdout)
	require.Contains(t, whole.stdout, "kind: Executor")
	r = staging.pipe(whole.stdout, "plan", "-f", "-")
	require.Equal(t, 0, r.code, r.stdout+r.stderr)
	mill := "kind: Job\nname: grind\nspec: {executor: {name: mill}, handler: grind, schedule: {kind: none}}\n---\nkind: Executor\nname: mill\nspec: {maxRunning: 3}\n"
	r = production.pipe(mill, "apply", "-f", "-", "--yes")
	require.Equal(t, 0, r.code, r.stderr)
	require.Equal(t, 0, production.pipe(production.run("export").stdout, "plan", "-f", "-").code)

	schemas := filepath.Join(dir, "schemas")
	r = production.run("schema", "--dir", schemas)
	require.Equal(t, 0, r.code, r.stderr)
	shipped, err := os.ReadDir(filepath.Join("..", "..", "docs", "schemas"))
	require.NoError(t, err)
	for _, f := range shipped { // those of the repository are those of a server
		want, err := os.ReadFile(filepath.Join("..", "..", "docs", "schemas", f.Name()))
		require.NoError(t, err)
		got, err := os.ReadFile(filepath.Join(schemas, f.Name()))
		require.NoError(t, err)
		require.Equal(t, string(want), string(got), f.Name())
	}
	require.Contains(t, production.run("schema", "Job").stdout, `"schedule"`)
	require.Equal(t, 2, production.run("schema").code)

	less := file("less.yaml", strings.SplitN(exported.stdout, "kind: Job", 2)[0]+"kind: Job"+exported.stdout[strings.LastIndex(exported.stdout, "kind: Job")+len("kind: Job"):])
	r = production.run("apply", "-f", less, "--set", "shop", "--prune")
	require.Equal(t, 2, r.code, "no terminal to ask on")
	require.Contains(t, r.stderr, "- Job ")
	r = production.run("apply", "-f", less, "--set", "shop", "--prune", "--yes")
	require.Equal(t, 0, r.code, r.stderr)
	require.Contains(t, r.stderr, "-1 ")

	r = staging.pipe("kind: Executor\nname: shop\n", "delete", "-f", "-", "--dry-run")
	require.Equal(t, 1, r.code, r.stderr)
	require.Contains(t, r.stderr, "not written: the executor \"shop\" has 2 jobs; delete or stop them first, or take them along: carillon executor delete shop --jobs --instances")
	require.Equal(t, 2, staging.run("delete", "-f", shop, "--values", values).code)
	r = staging.run("delete", "-f", shop, "--values", values, "--yes")
	require.Equal(t, 0, r.code, r.stderr)
	require.Contains(t, r.stderr, "+0 ~0 -3 =0")
	require.NotContains(t, staging.run("job", "list", "-o", "name").stdout, "close-day")
}

// A cluster of several tenants goes through one file: nothing differs afterwards, and an empty
// cluster becomes the same. Mistakes are told by file and line.
func TestAWholeClusterInOneFile(t *testing.T) {
	first, second := serverWithShop(t), serverWithShop(t)
	path := filepath.Join(t.TempDir(), "cluster.yaml")
	text := `kind: Tenant
name: acme
spec: {quotas: {jobs: 7}}
---
kind: Executor
name: mill
tenant: acme
spec: {maxRunning: 3}
---
kind: Job
name: grind
tenant: acme
spec: {executor: {name: mill}, handler: grind, schedule: {kind: cron, expr: "0 2 * * *", zone: UTC}}
---
kind: Member
name: ann
tenant: acme
spec: {role: operator, executors: [mill]}
`
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	r := first.run("plan", "-f", path)
	require.Equal(t, 1, r.code, r.stderr)
	require.Contains(t, r.stderr, "+ Tenant acme")
	require.Contains(t, r.stderr, "3 documents are planned when the tenant is there.")
	require.NotContains(t, r.stderr, "script policy")
	r = first.pipe(text+"---\nkind: Script\nname: sweep\ntenant: acme\nspec: {language: shell, content: \"true\"}\n", "plan", "-f", "-")
	require.Equal(t, 1, r.code, r.stderr)
	require.Contains(t, r.stderr, "warning: 1 document with or for scripts is of the tenant acme.")
	require.Contains(t, r.stderr, "carillon script policy --languages shell")
	r = first.run("apply", "-f", path, "--dry-run")
	require.Equal(t, 0, r.code, r.stderr)
	r = first.run("apply", "-f", path, "--yes")
	require.Equal(t, 0, r.code, r.stderr)
	require.Contains(t, r.stderr, "Tenant acme:\n+ Executor mill")
	r = first.run("plan", "-f", path)
	require.Equal(t, 0, r.code, r.stderr)

	exported := first.run("export", "--all-tenants")
	require.Equal(t, 0, exported.code, exported.stderr)
	require.Contains(t, exported.stdout, "kind: Job\nname: grind\ntenant: acme\n")
	require.Contains(t, exported.stdout, "name: shop\ntenant: default\n")
	r = first.pipe(exported.stdout, "plan", "-f", "-")
	require.Equal(t, 0, r.code, r.stdout+r.stderr)
	r = second.pipe(exported.stdout, "apply", "-f", "-", "--yes")
	require.Equal(t, 0, r.code, r.stderr)
	again := second.run("export", "--all-tenants")
	require.Equal(t, exported.stdout, again.stdout)

	require.NoError(t, os.WriteFile(path, []byte(strings.Replace(text, "maxRunning: 3", "maxRuning: 3", 1)), 0o600))
	r = first.run("plan", "-f", path)
	require.Equal(t, 2, r.code)
	require.Contains(t, r.stderr, path+":8 Executor mill: spec.maxRuning: there is no such field")
}
