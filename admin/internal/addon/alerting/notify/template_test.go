package notify

import (
	"encoding/json"
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/noun"
	"github.com/carillon-sched/carillon/admin/internal/domain"
)

func templated(kind domain.AlertKind, t noun.ChannelTemplates) *Notice {
	n := Sample(kind)
	n.Channel = &Channel{AlertChannelSpec: noun.AlertChannelSpec{Name: "on call", Kind: noun.ChannelWebhook, Templates: t}}
	return n
}

func TestTemplates(t *testing.T) {
	for _, row := range []struct{ text, want string }{
		{"{{.Title}} {{.Kind}} {{.Severity}} {{.Phase}} {{.Channel}} {{.Language}}", "Failed: close-day run_failed error trigger on call en"},
		{"{{.Job.Name}} {{.Job.Labels.team}}{{.Job.Labels.none}} {{.Tenant.Name}} {{.Executor.Name}} {{.Owner.Email}}", "close-day finance shop billing ann@example.com"},
		{"{{.Run.ID}} {{.Run.Attempt}}/{{.Run.MaxAttempts}} {{.Run.FireAt}} {{.Run.Instance.Name}}", "4 3/3 2026-01-15T02:00:00.000Z web-1"},
		{"{{if gt .Run.Attempt 1}}again{{end}}", "again"},
		{"{{range .Facts}}{{.Label}}={{.Value}};{{break}}{{end}}", "Job=close-day;"},
		{"{{truncate 9 .Run.Error}} {{upper .Kind}} {{replace \"_\" \"-\" .Kind}} {{default \"none\" .Detail}} {{contains \"route\" .Error}}", "no route… RUN_FAILED run-failed none true"},
		{"{{if eq .Kind `no`}}" + strings.Repeat("{{else if eq .Kind `other`}}", 20) + "{{else}}as many as there are{{end}}", "as many as there are"},
		{"{{json .Job}}", `{"id":"3","name":"close-day","revision":1,"handler":"billing.CloseDay","labels":{"team":"finance"}}`},
		{"{{printf \"%-12s|%03d\" .Kind .Run.Attempt}}", "run_failed  |003"},
		{"", ""},
	} {
		n := templated(domain.AlertRunFailed, noun.ChannelTemplates{Body: row.text, ContentType: "text/plain"})
		got, err := n.Body(English)
		require.NoError(t, err, row.text)
		require.Equal(t, row.want, got, row.text)
	}
}

// Templates are the tenants': whatever stands in one, it ends soon, and makes little.
func TestTemplatesAreBounded(t *testing.T) {
	double := `{{$x := "aaaaaaaaaaaaaaaa"}}` + strings.Repeat(`{{$x = print $x $x}}`, 60) + `{{$x}}`
	for name, text := range map[string]string{
		"loop":               `{{range 2000000000}}{{end}}`,
		"loops in loops":     strings.Repeat(`{{range 100000}}`, 5) + strings.Repeat(`{{end}}`, 5),
		"loop that writes":   `{{range 2000000000}}x{{end}}`,
		"else of a loop":     `{{range .Job.Labels.none}}{{else}}{{range 2000000000}}{{end}}{{end}}`,
		"doubling":           double,
		"doubling by printf": strings.ReplaceAll(double, "print $x $x", `printf "%s%s" $x $x`),
		"doubling by quotes": strings.ReplaceAll(double, "print $x $x", `printf "%q%q" $x $x`),
		"doubling by html":   strings.ReplaceAll(double, "print $x $x", `html $x $x`),
		"doubling by json":   strings.ReplaceAll(double, "print $x $x", `json (print $x $x)`),
		"replace":            `{{$x := "aaaaaaaaaaaaaaaa"}}` + strings.Repeat(`{{$x = replace "a" "aaaaaaaaaaaaaaaa" $x}}`, 10),
		"parentheses":        `{{` + strings.Repeat(`(`, 8_000) + `1` + strings.Repeat(`)`, 8_000) + `}}`,
		"loops around loops": strings.Repeat(`{{range .Facts}}`, 9) + strings.Repeat(`{{end}}`, 9),
		"many actions":       strings.Repeat(`{{1}}`, 1_001),
		"many steps":         `{{range 2001}}{{end}}`,
		"much on its way":    `{{$x := printf "%99s" ""}}` + strings.Repeat(`{{$x = print $x $x}}`, 9) + `{{range 30}}{{$y := print $x}}{{end}}`,
		"wide":               `{{printf "%999999999d" 1}}`,
		"wide by argument":   `{{printf "%*d" 999999999 1}}`,
		"long format":        `{{printf "` + strings.Repeat("%99s", 1000) + `" "x"}}`,
		"recursion":          `{{define "a"}}{{template "a"}}{{template "a"}}{{end}}{{template "a"}}`,
		"block":              `{{block "a" .}}{{end}}`,
		"itself":             `{{template "template"}}`,
		"no such field":      `{{.Nothing}}`,
		"no such function":   `{{env "HOME"}}`,
		"not closed":         `{{if .Title}}`,
		"call of a field":    `{{call .Title}}`,
	} {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			n := templated(domain.AlertRunFailed, noun.ChannelTemplates{Body: text, ContentType: "text/plain", HTML: text, Text: text})
			_, err := n.Body(English)
			require.Error(t, err)
			_, err = n.HTML(English)
			require.Error(t, err)
			require.Less(t, time.Since(began), time.Minute, "without a bound it would take years")
			c := n.Content(English)
			require.Contains(t, c.Error, "template text: ", "the alert is told all the same")
			require.Empty(t, c.Text)
			require.NotEmpty(t, c.Summary)
			err = CheckTemplates(&n.Channel.AlertChannelSpec)
			require.Error(t, err)
			var e *domain.Error
			require.True(t, errors.As(err, &e))
			require.Equal(t, "body.spec.templates.text", e.Fields[0].Location)
		})
	}
}

func TestHTMLTemplatesEscape(t *testing.T) {
	n := templated(domain.AlertRunFailed, noun.ChannelTemplates{HTML: `<p>{{.Error}}</p>{{range .Facts}}<a title="{{.Value}}">{{end}}`})
	got, err := n.HTML(English)
	require.NoError(t, err)
	require.Contains(t, got, "<p>no route to &#34;db&#34; &lt;10.0.0.7&gt; *now*")
	require.Contains(t, got, `<a title="close-day">`)
}

func TestCheckTemplates(t *testing.T) {
	check := func(t noun.ChannelTemplates) error {
		return CheckTemplates(&noun.AlertChannelSpec{Name: "x", Kind: noun.ChannelWebhook, Templates: t})
	}
	require.NoError(t, check(noun.ChannelTemplates{}))
	require.NoError(t, check(noun.ChannelTemplates{Body: `{"text":{{json .Title}},"error":{{json .Run.Error}},"labels":{{json .Job.Labels}}}`}))
	require.ErrorContains(t, check(noun.ChannelTemplates{Body: `{"text":"{{.Error}}"}`}), "{{json .Title}}", "quotes and line ends of an error would break it")
	require.NoError(t, check(noun.ChannelTemplates{Body: `{"text":"{{.Error}}"}`, ContentType: "text/plain"}))
	require.NoError(t, check(noun.ChannelTemplates{Title: "{{.Title}}", Text: "{{.Summary}}{{.Run.Error}}", HTML: "<b>{{.Title}}</b>"}))
	require.ErrorContains(t, check(noun.ChannelTemplates{Text: `{{if not .Run.ID}}{{.Nothing}}{{end}}`}), "no_executor", "of one kind only")
}

func TestContentByTemplates(t *testing.T) {
	n := templated(domain.AlertRunFailed, noun.ChannelTemplates{Title: "{{upper .Job.Name}}\n{{.Severity}}", Text: "  {{.Summary}}\x1b[31m "})
	c := n.Content(Chinese)
	require.Equal(t, "CLOSE-DAY error", c.Title)
	require.Equal(t, "本次执行在 3 次尝试后最终失败，不会再重试。[31m", c.Text)
	n.Channel.Language = noun.LanguageEnglish
	require.Equal(t, English, n.Content(Chinese).Language, "the channel's comes first")
}

func TestSamples(t *testing.T) {
	for _, kind := range sampleKinds {
		for _, language := range []Language{English, Chinese} {
			n := Sample(kind)
			c := n.standard(language)
			require.NotEmpty(t, c.Title)
			require.NotEmpty(t, c.Plain())
			require.True(t, json.Valid(NewPayload(n, language).Encode()))
			require.NotContains(t, c.Plain(), "%!")
		}
	}
}

// The guide lists what templates can name.
func TestFieldsAreDocumented(t *testing.T) {
	guide, err := os.ReadFile("../../../../../docs/guide/alert-channels.md")
	require.NoError(t, err)
	var look func(prefix string, of reflect.Type)
	look = func(prefix string, of reflect.Type) {
		for field := range of.Fields() {
			switch {
			case field.Anonymous:
				look(prefix, field.Type)
			case field.Type.Kind() == reflect.Struct && field.Name != "Instance":
				require.Contains(t, string(guide), "`"+prefix+"."+field.Name+".", field.Name)
			default:
				require.Contains(t, string(guide), prefix+"."+field.Name, field.Name)
			}
		}
	}
	look("", reflect.TypeFor[Data]())
	look(".Run", reflect.TypeFor[RunData]())
	for name := range new(budget).functions() {
		if name != "tick" && name != "println" && name != "html" && name != "js" && name != "urlquery" {
			require.Contains(t, string(guide), "`"+name, name)
		}
	}
}
