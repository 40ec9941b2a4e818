package admin_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/carillon-sched/carillon/admin"
	executor "github.com/carillon-sched/carillon/executor-sdk"
	"github.com/carillon-sched/carillon/executor-sdk/metrics"
)

var update = flag.Bool("update", false, "write the tables of docs/guide/metrics.md")

const metricsDoc = "../docs/guide/metrics.md"

// metricFamily is one metric as a scrape shows it.
type metricFamily struct {
	kind, help string
	labels     map[string]bool
}

// families are what a node and an executor export.
func families(t *testing.T) (node, sdk map[string]*metricFamily) {
	t.Helper()
	n := startNode(t, func(c *admin.Config) {
		c.AddOns = admin.Settings{"mail-host": {"127.0.0.1"}, "mail-port": {"1"}, "mail-from": {"carillon@example.test"}, "mail-tls": {"none"}}
	})
	var ex *executor.Executor
	n.startExecutor("shop", nil, func(e *executor.Executor) {
		ex = e
		executor.HandleFunc(e, "tick", func(context.Context) error { return nil })
	})
	n.until(n.runNow(n.newJob("shop", "tick", nil), nil), "succeeded")
	answer := httptest.NewRecorder()
	metrics.Handler(ex).ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/", nil))
	require.Equal(t, metrics.ContentType, answer.Header().Get("Content-Type"))
	return parseScrape(t, n.scrape()), parseScrape(t, answer.Body.String())
}

func (n *node) scrape() string {
	n.t.Helper()
	res, err := http.Get(n.admin.URL() + "/metrics")
	require.NoError(n.t, err)
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	require.NoError(n.t, err)
	return string(raw)
}

var (
	sampleLine = regexp.MustCompile(`^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$`)
	labelPair  = regexp.MustCompile(`([a-zA-Z_][a-zA-Z0-9_]*)="(?:[^"\\]|\\.)*"`)
	goodName   = regexp.MustCompile(`^carillon_[a-z0-9_]+$`)
)

// parseScrape reads the text format strictly: every line is one of its kinds,
// and every sample belongs to the family above it.
func parseScrape(t *testing.T, text string) map[string]*metricFamily {
	t.Helper()
	out := map[string]*metricFamily{}
	current := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if rest, ok := strings.CutPrefix(line, "# HELP "); ok {
			var help string
			current, help, _ = strings.Cut(rest, " ")
			require.NotContains(t, out, current, "a family comes once")
			out[current] = &metricFamily{help: help, labels: map[string]bool{}}
			continue
		}
		if rest, ok := strings.CutPrefix(line, "# TYPE "+current+" "); ok {
			out[current].kind = rest
			continue
		}
		m := sampleLine.FindStringSubmatch(line)
		require.NotNil(t, m, "no line of the text format: %q", line)
		suffix, ok := strings.CutPrefix(m[1], current)
		require.True(t, ok, "%s stands under %s", m[1], current)
		require.Contains(t, []string{"", "_bucket", "_sum", "_count"}, suffix)
		for _, pair := range labelPair.FindAllStringSubmatch(m[2], -1) {
			out[current].labels[pair[1]] = true
		}
		require.Empty(t, strings.Trim(labelPair.ReplaceAllString(m[2], ""), ","), line)
	}
	return out
}

// table is the list of metrics as the document has it.
func table(of map[string]*metricFamily) string {
	var b strings.Builder
	b.WriteString("| metric | kind | labels | what |\n|---|---|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(of)) {
		if !strings.HasPrefix(name, "carillon_") {
			continue
		}
		f := of[name]
		labels := slices.DeleteFunc(slices.Sorted(maps.Keys(f.labels)), func(l string) bool { return l == "le" })
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", name, f.kind, strings.Join(labels, ", "), f.help)
	}
	return b.String()
}

// Names follow Prometheus's conventions, labels are few, and docs/guide/metrics.md
// says what is there, no more and no less (go test ./admin -run Metrics -update).
func TestMetricsAreDocumented(t *testing.T) {
	t.Parallel()
	node, sdk := families(t)
	allowed := map[string]bool{
		"result": true, "reason": true, "outcome": true, "code": true, "state": true, "stage": true, "step": true, "queue": true, "pool": true,
		"connection": true, "direction": true, "channel": true, "topic": true, "method": true, "route": true, "status": true, "le": true,
		"version": true, "go_version": true, "sdk_version": true, "executor": true, "handler": true,
	}
	for _, of := range []map[string]*metricFamily{node, sdk} {
		for name, f := range of {
			if !strings.HasPrefix(name, "carillon_") {
				continue
			}
			require.Regexp(t, goodName, name)
			require.NotEmpty(t, f.help, name)
			require.Equal(t, f.kind == "counter", strings.HasSuffix(name, "_total"), "%s is a %s", name, f.kind)
			for l := range f.labels {
				require.True(t, allowed[l], "%s has the label %s, which may have too many values", name, l)
			}
		}
	}
	raw, err := os.ReadFile(metricsDoc)
	require.NoError(t, err)
	doc := string(raw)
	for mark, of := range map[string]map[string]*metricFamily{"admin": node, "executor": sdk} {
		begin, end := "<!-- "+mark+" -->\n", "<!-- /"+mark+" -->"
		head, rest, ok := strings.Cut(doc, begin)
		require.True(t, ok, "the document has the mark %q", begin)
		_, tail, ok := strings.Cut(rest, end)
		require.True(t, ok)
		doc = head + begin + table(of) + end + tail
	}
	if *update {
		require.NoError(t, os.WriteFile(metricsDoc, []byte(doc), 0o600))
		return
	}
	require.Equal(t, doc, string(raw), "docs/guide/metrics.md is not what is exported: go test ./admin -run TestMetricsAreDocumented -update")
}

// expression is a PromQL text and where it stands.
type expression struct{ at, text string }

type rules struct {
	Groups []struct {
		Name  string
		Rules []struct {
			Alert, Expr, For    string
			Labels, Annotations map[string]string
		}
	}
}

// Everything that the dashboard and the rules ask for is exported, with these
// labels, and each alert is explained.
func TestDashboardAndRulesAskForWhatIsThere(t *testing.T) {
	t.Parallel()
	node, sdk := families(t)
	all := maps.Clone(node)
	maps.Copy(all, sdk)
	var list []expression
	asked := map[string]bool{}

	raw, err := os.ReadFile("../docs/observability/grafana.json")
	require.NoError(t, err)
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
		Templating struct {
			List []struct{ Name, Query string }
		}
	}
	require.NoError(t, json.Unmarshal(raw, &dashboard))
	for _, p := range dashboard.Panels {
		for _, target := range p.Targets {
			list = append(list, expression{"panel " + p.Title, target.Expr})
		}
	}
	for _, v := range dashboard.Templating.List {
		if m := regexp.MustCompile(`^label_values\((.*), (\w+)\)$`).FindStringSubmatch(v.Query); m != nil {
			list = append(list, expression{"variable " + v.Name, "sum by (" + m[2] + ") (" + m[1] + ")"})
		}
	}

	doc, err := os.ReadFile("../docs/guide/runbooks.md")
	require.NoError(t, err)
	sections := strings.Count(string(doc), "\n### ")
	for _, kind := range []string{
		"run_failed", "run_timed_out", "run_lost", "run_missed", "no_executor", "recovered", "run_late", "run_long", "job_absent",
		"scheduler_behind", "instance_gone",
		"runs_pile_up", "clock_jump", "db_rollback", "executor_flapping", "overload", "stalled", "row_set_aside",
	} {
		require.Regexp(t, runbook(kind), string(doc), "docs/guide/runbooks.md says what to do about %s", kind)
		sections--
	}
	raw, err = os.ReadFile("../docs/observability/alerts.yml")
	require.NoError(t, err)
	var file rules
	decoder := yaml.NewDecoder(bytes.NewReader(raw))
	decoder.KnownFields(true)
	require.NoError(t, decoder.Decode(&file))
	for _, g := range file.Groups {
		for _, r := range g.Rules {
			list = append(list, expression{"alert " + r.Alert, r.Expr})
			require.Contains(t, []string{"info", "warning", "critical"}, r.Labels["severity"], r.Alert)
			require.NotEmpty(t, r.Annotations["summary"], r.Alert)
			require.True(t, strings.HasSuffix(r.Annotations["runbook_url"], "/docs/guide/runbooks.md#"+strings.ToLower(r.Alert)), r.Alert)
			require.Regexp(t, runbook(r.Alert), string(doc), "docs/guide/runbooks.md says what to do about %s", r.Alert)
			sections--
		}
	}
	require.Zero(t, sections, "each section of docs/guide/runbooks.md is of a rule or a kind")
	require.Greater(t, len(list), 60, "all were read")
	for _, e := range list {
		for _, problem := range judge(e.text, all, asked) {
			t.Errorf("%s: %s\n%s", e.at, problem, e.text)
		}
	}
	for name := range all { // what nobody looks at is not worth its bytes
		if strings.HasPrefix(name, "carillon_") && !asked[name] {
			t.Errorf("%s is on no panel and in no rule", name)
		}
	}
}

// runbook is what a section about an alert looks like.
func runbook(name string) string {
	return `(?m)^### ` + name + `\n\n\S.*\n\n\*Users notice\*: .*\n\n(?:    .*\n)+\n\S.*\n\n\*Wake\*: `
}

var (
	selector   = regexp.MustCompile(`\b([a-z][a-z0-9]*_[a-z0-9_]+)(\{[^}]*\})?`)
	matcher    = regexp.MustCompile(`([a-z_]+)\s*(?:=~|!~|!=|=)\s*"`)
	grouping   = regexp.MustCompile(`\b(?:by|without)\s*\(([^)]*)\)`)
	word       = regexp.MustCompile(`[a-zA-Z_]\w*`)
	quoted     = regexp.MustCompile(`"[^"]*"`)
	duration   = regexp.MustCompile(`\[[^\]]*\]`)
	promWords  = map[string]bool{"sum": true, "max": true, "min": true, "rate": true, "increase": true, "abs": true, "and": true, "or": true, "by": true, "histogram_quantile": true, "min_over_time": true, "max_over_time": true}
	outerNames = map[string]bool{"instance": true, "job": true} // that the scraper adds
)

// judge returns what is wrong with an expression: a metric or label that is not
// exported, a word that is none of PromQL's, or parentheses that do not match.
func judge(text string, all map[string]*metricFamily, asked map[string]bool) (problems []string) {
	wrong := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	if strings.Count(text, "(") != strings.Count(text, ")") || strings.Count(text, "{") != strings.Count(text, "}") {
		wrong("parentheses do not match")
	}
	labels := map[string]bool{}
	metrics := 0
	bare := grouping.ReplaceAllString(duration.ReplaceAllString(text, ""), "")
	bare = selector.ReplaceAllStringFunc(bare, func(s string) string {
		m := selector.FindStringSubmatch(s)
		if promWords[m[1]] {
			return ""
		}
		name := m[1]
		f := all[name]
		for _, suffix := range []string{"_bucket", "_sum", "_count"} {
			if base, ok := strings.CutSuffix(name, suffix); ok && f == nil && all[base] != nil && all[base].kind == "histogram" {
				name, f = base, all[base]
			}
		}
		if f == nil {
			wrong("%s is not exported", m[1])
			return ""
		}
		metrics++
		asked[name] = true
		maps.Copy(labels, f.labels)
		for _, l := range matcher.FindAllStringSubmatch(m[2], -1) {
			if !f.labels[l[1]] && !outerNames[l[1]] {
				wrong("%s has no label %s", name, l[1])
			}
		}
		return ""
	})
	for _, w := range word.FindAllString(quoted.ReplaceAllString(bare, ""), -1) {
		if !promWords[w] {
			wrong("%s is no word of PromQL that is known here", w)
		}
	}
	for _, g := range grouping.FindAllStringSubmatch(text, -1) {
		for _, l := range word.FindAllString(g[1], -1) {
			if !labels[l] && !outerNames[l] {
				wrong("nothing in it has the label %s", l)
			}
		}
	}
	if metrics == 0 {
		wrong("it asks for no metric")
	}
	return problems
}

// The judge finds what it is there for.
func TestJudgeOfExpressions(t *testing.T) {
	t.Parallel()
	all := map[string]*metricFamily{
		"carillon_a_total":   {kind: "counter", labels: map[string]bool{"state": true}},
		"carillon_h_seconds": {kind: "histogram", labels: map[string]bool{"le": true}},
	}
	for text, want := range map[string]string{
		`sum by (state, instance) (rate(carillon_a_total{state=~"x|y"}[5m])) > 0`:     "",
		`histogram_quantile(0.99, sum by (le) (rate(carillon_h_seconds_bucket[5m])))`: "",
		`rate(carillon_b_total[5m])`:        "carillon_b_total is not exported",
		`rate(carillon_a_total_bucket[5m])`: "carillon_a_total_bucket is not exported",
		`carillon_a_total{stat="x"}`:        "carillon_a_total has no label stat",
		`sum by (le) (carillon_a_total)`:    "nothing in it has the label le",
		`summ(carillon_a_total)`:            "summ is no word of PromQL that is known here",
		`sum(carillon_a_total`:              "parentheses do not match",
		`sum(1)`:                            "it asks for no metric",
	} {
		var got string
		if problems := judge(text, all, map[string]bool{}); len(problems) > 0 {
			got = problems[0]
		}
		require.Equal(t, want, got, text)
	}
}
