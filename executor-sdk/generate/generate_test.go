package generate

import (
	"bytes"
	"errors"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// around puts a marked method into an otherwise correct file. The clock
// marker stands in line 11, the method in line 12.
func around(clock, method string) string {
	return `package shop

import "context"

type Report struct{}

//carillon:timer
type Orders struct{}

// Close closes.
` + clock + "\n" + method + "\n"
}

const goodMethod = "func (o *Orders) Close(ctx context.Context) error { return nil }"

func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	return dir
}

func TestProblems(t *testing.T) {
	tests := []struct {
		name, source, want string
	}{
		{"unknown key", around("//carillon:clock name=a retires=3", goodMethod),
			`a.go:11:25: unknown key "retires" in carillon:clock; did you mean "retries"?`},
		{"far unknown key", around("//carillon:clock name=a colour=red", goodMethod),
			`a.go:11:25: unknown key "colour" in carillon:clock; use one of name, description`},
		{"unknown timer key", "package shop\n\n//carillon:timer nmae=x\ntype Orders struct{}\n",
			`a.go:3:18: unknown key "nmae" in carillon:timer; did you mean "name"?`},
		{"unknown marker", around("//carillon:clok name=a", goodMethod),
			`a.go:11:1: unknown marker //carillon:clok; did you mean "clock"?`},
		{"space in marker", around("// carillon:clock name=a", goodMethod),
			`a.go:11:1: this comment looks like a Carillon marker but is not one; write //carillon:clock`},
		{"capitals in marker", around("//Carillon:Clock name=a", goodMethod),
			`a.go:11:1: this comment looks like a Carillon marker`},
		{"no name", around(`//carillon:clock cron="0 0 2 * * *"`, goodMethod),
			"a.go:11:1: carillon:clock has no name; add name="},
		{"key twice", around("//carillon:clock name=a name=b", goodMethod), `a.go:11:25: key "name" is given twice`},
		{"open quote", around(`//carillon:clock name=a cron="0 0`, goodMethod),
			`a.go:11:30: value of "cron": the quotation does not end`},
		{"quote in bare value", around(`//carillon:clock name=a"b`, goodMethod), "a quotation mark inside a bare value"},
		{"empty value", around("//carillon:clock name=", goodMethod), `a.go:11:23: value of "name": nothing after =`},
		{"glued options", around(`//carillon:clock name="a"every=3s`, goodMethod), `a.go:11:26: unexpected "e" after "name"`},
		{"junk", around("//carillon:clock name=a ,", goodMethod), `a.go:11:25: unexpected ","`},
		{"flag with value", around("//carillon:clock name=a idempotent=true", goodMethod),
			`key "idempotent" takes no value; write idempotent alone`},
		{"value missing", around("//carillon:clock name=a cron", goodMethod), `a.go:11:25: key "cron" needs a value`},
		{"bad name", around(`//carillon:clock name="close day"`, goodMethod), `a.go:11:23: name="close day" is not allowed`},
		{"bad duration", around("//carillon:clock name=a timeout=5", goodMethod),
			`a.go:11:33: timeout="5" is no duration; write a duration like`},
		{"negative duration", around("//carillon:clock name=a every=-1s", goodMethod), `every="-1s" must be more than zero`},
		{"fine duration", around("//carillon:clock name=a every=10us", goodMethod), `every="10us" is too fine`},
		{"bad enum", around("//carillon:clock name=a blocking=serail", goodMethod),
			`a.go:11:34: blocking="serail" is not known; did you mean "serial"?`},
		{"bad dialect", around(`//carillon:clock name=a cron="0 0 2 * * *" dialect=unix`, goodMethod),
			`dialect="unix" is not known; use one of auto, standard, seconds, quartz`},
		{"bad routing", around("//carillon:clock name=a routing=round-robin", goodMethod), `did you mean "round_robin"?`},
		{"routing key alone", around("//carillon:clock name=a routing=random routing-key=/a", goodMethod), "only beside routing=consistent_hash"},
		{"many sends", around("//carillon:clock name=a send-retries=1000", goodMethod), `send-retries="1000" is out of range`},
		{"bad misfire", around("//carillon:clock name=a every=1s misfire=once", goodMethod), `misfire="once" is not known`},
		{"bad zone", around(`//carillon:clock name=a cron="0 0 2 * * *" zone=Asia/Shanghia`, goodMethod),
			`zone="Asia/Shanghia" is not known; use an IANA name`},
		{"local zone", around(`//carillon:clock name=a cron="0 0 2 * * *" zone=Local`, goodMethod), "zone=Local means another zone"},
		{"zone alone", around("//carillon:clock name=a zone=UTC", goodMethod), `key "zone" has a meaning only beside cron`},
		{"misfire alone", around("//carillon:clock name=a misfire=skip", goodMethod), "only with a schedule"},
		{"retry delay alone", around("//carillon:clock name=a retry-delay=3s", goodMethod), "only beside retries"},
		{"backoff alone", around("//carillon:clock name=a retry-backoff=2", goodMethod), "a.go:11:25: retry-backoff has a meaning only beside retries"},
		{"small backoff", around("//carillon:clock name=a retries=1 retry-backoff=0.5", goodMethod),
			`a.go:11:49: retry-backoff="0.5" is out of range; write a number from 1 to 100 with at most three decimals`},
		{"fine backoff", around("//carillon:clock name=a retries=1 retry-backoff=1.0005", goodMethod), "at most three decimals"},
		{"no backoff", around("//carillon:clock name=a retries=1 retry-backoff=NaN", goodMethod), `retry-backoff="NaN" is out of range`},
		{"long retry delay", around("//carillon:clock name=a retries=1 max-retry-delay=25h", goodMethod),
			`a.go:11:51: max-retry-delay="25h" is out of range; write at most 24h`},
		{"long dispatch timeout", around("//carillon:clock name=a dispatch-timeout=169h", goodMethod), `dispatch-timeout="169h" is out of range; write at most 168h`},
		{"bad loss", around("//carillon:clock name=a on-lost=repeat", goodMethod),
			`a.go:11:33: on-lost="repeat" is not known; use one of auto, fail, retry`},
		{"no label", around(`//carillon:clock name=a labels="team=books, prod"`, goodMethod),
			`a.go:11:32: labels="team=books, prod": " prod" is no label; write labels="team=books, env=prod"`},
		{"label with a space", around(`//carillon:clock name=a labels="my team=books"`, goodMethod), `is no label`},
		{"long label", around("//carillon:clock name=a labels=a="+strings.Repeat("x", 129), goodMethod), `the value of "a" is not allowed; use at most 128 bytes`},
		{"label twice", around("//carillon:clock name=a labels=a=1,a=2", goodMethod), `labels: the key "a" is given twice`},
		{"neither yes nor no", around("//carillon:clock name=a alert-on-failure=no", goodMethod),
			`a.go:11:42: alert-on-failure="no" is not known; use one of true, false`},
		{"alert flag", around("//carillon:clock name=a alert-no-executor", goodMethod), `key "alert-no-executor" needs a value`},
		{"bad alert address", around("//carillon:clock name=a alert-emails=a@b.c,ops", goodMethod),
			`a.go:11:38: alert-emails="ops" is no mail address; write an address like team@example.com`},
		{"many alert addresses", around("//carillon:clock name=a alert-emails=a@b.c"+strings.Repeat(",a@b.c", 20), goodMethod), "alert-emails has 21 addresses; write at most 20"},
		{"bad webhook", around("//carillon:clock name=a alert-webhook=ftp://example.com", goodMethod),
			`a.go:11:39: alert-webhook="ftp://example.com" is not allowed; write an http or https address`},
		{"webhook with a user", around("//carillon:clock name=a alert-webhook=https://a:b@example.com", goodMethod), "without a user name"},
		{"making up alone", around("//carillon:clock name=a every=1s misfire-max-runs=3", goodMethod), "misfire-max-runs has a meaning only beside misfire=all"},
		{"start alone", around("//carillon:clock name=a start-at=2026-12-24T18:00:00Z", goodMethod), `key "start-at" has a meaning only with a schedule`},
		{"two starts", around("//carillon:clock name=a every=1s start-at=2026-12-24T18:00:00Z,2026-12-25T18:00:00Z", goodMethod), "write one instant"},
		{"no instant", around("//carillon:clock name=a every=1s end-at=tomorrow", goodMethod), `a.go:11:41: end-at="tomorrow" is no instant`},
		{"many retries", around("//carillon:clock name=a retries=1000", goodMethod), `a.go:11:33: retries="1000" is out of range`},
		{"high priority", around("//carillon:clock name=a priority=101", goodMethod),
			`a.go:11:34: priority="101" is out of range; write a whole number from -100 to 100`},
		{"parallelism alone", around("//carillon:clock name=a blocking=serial parallelism=3", goodMethod),
			"a.go:11:41: parallelism has a meaning only beside blocking=parallel"},
		{"bad ownership", around("//carillon:clock name=a owned-by=cod", goodMethod), `owned-by="cod" is not known`},
		{"bad removal", around("//carillon:clock name=a when-removed=burn", goodMethod), `when-removed="burn" is not known`},
		{"broadcast and shards", around("//carillon:clock name=a broadcast shards=3", goodMethod), "broadcast and shards exclude each other"},
		{"many shards", around("//carillon:clock name=a shards=1001", goodMethod), `shards="1001" is out of range`},
		{"on-gone alone", around("//carillon:clock name=a shards=3 on-gone=move", goodMethod), "on-gone has a meaning only beside broadcast"},
		{"hook alone", around("//carillon:clock name=a after=collect", goodMethod), "after has a meaning only beside broadcast or shards"},
		{"bad owner", around("//carillon:clock name=a owner=shop", goodMethod), `owner="shop" is no mail address`},
		{"cron and every", around(`//carillon:clock name=a cron="0 0 2 * * *" every=3s`, goodMethod), "cron and every exclude each other"},
		{"cron fields", around(`//carillon:clock name=a cron="0 0 2 *"`, goodMethod),
			`a.go:11:30: cron "0 0 2 *" has 4 fields, want 5 to 7`},
		{"cron fields of dialect", around(`//carillon:clock name=a cron="0 2 * * *" dialect=seconds`, goodMethod), "has 5 fields, want 6"},
		{"bad input", around("//carillon:clock name=a input={", "func (o *Orders) Close(ctx context.Context, in Report) error { return nil }"),
			"a.go:11:31: input is no JSON"},
		{"useless input", around("//carillon:clock name=a input={}", goodMethod), "a.go:11:25: method Close takes no input"},

		{"no context", around("//carillon:clock name=a", "func (o *Orders) Close() error { return nil }"),
			"a.go:12:18: method Close does not take a context.Context first; want func(context.Context) error"},
		{"other context", around("//carillon:clock name=a", "func (o *Orders) Close(ctx Context) error { return nil }"),
			"does not take a context.Context first"},
		{"no error", around("//carillon:clock name=a", "func (o *Orders) Close(ctx context.Context) Report { return Report{} }"),
			"method Close does not return an error last"},
		{"two inputs", around("//carillon:clock name=a", "func (o *Orders) Close(ctx context.Context, a, b int) error { return nil }"),
			"takes 2 values after the context"},
		{"two outputs", around("//carillon:clock name=a", "func (o *Orders) Close(ctx context.Context) (int, int, error) { return 0, 0, nil }"),
			"returns 3 values"},
		{"variadic", around("//carillon:clock name=a", "func (o *Orders) Close(ctx context.Context, a ...int) error { return nil }"), "is variadic"},
		{"channel", around("//carillon:clock name=a", "func (o *Orders) Close(ctx context.Context, a chan int) error { return nil }"),
			"has an input that cannot be JSON"},
		{"unexported method", around("//carillon:clock name=a", "func (o *Orders) closeDay(ctx context.Context) error { return nil }"),
			"a.go:12:18: method closeDay with a clock marker is not exported; rename it to CloseDay"},
		{"unexported type", "package shop\n\n//carillon:timer\ntype orders struct{}\n",
			"a.go:4:6: type orders with a timer marker is not exported; rename it to Orders"},
		{"generic type", "package shop\n\n//carillon:timer\ntype Orders[T any] struct{}\n", "is generic"},
		{"interface", "package shop\n\n//carillon:timer\ntype Orders interface{}\n", "is an interface"},
		{"alias", "package shop\n\n//carillon:timer\ntype Orders = int\n", "is an alias"},
		{"timer without clock", "package shop\n\n//carillon:timer\ntype Orders struct{}\n",
			"a.go:4:6: type Orders has a timer marker but no clock"},
		{"clock without timer", "package shop\n\nimport \"context\"\n\ntype T struct{}\n\n//carillon:clock name=a\nfunc (T) M(context.Context) error { return nil }\n",
			"a.go:7:1: the receiver type T has no timer marker; add //carillon:timer above type T"},
		{"clock on function", around("//carillon:clock name=a", "func Close(ctx context.Context) error { return nil }"),
			"a.go:11:1: carillon:clock on the function Close"},
		{"clock on type", "package shop\n\n//carillon:clock name=a\ntype T struct{}\n", "a.go:3:1: carillon:clock on a type"},
		{"timer on method", around("//carillon:timer", goodMethod), "a.go:11:1: carillon:timer on a function"},
		{"two timers", "package shop\n\n//carillon:timer\n//carillon:timer\ntype T struct{}\n", "type T has two timer markers"},
		{"stray marker", around("//carillon:clock name=a\n", goodMethod), "a.go:11:1: carillon:clock belongs to nothing"},
		{"duplicate name", around("//carillon:clock name=a\n//carillon:clock name=a", goodMethod),
			`a.go:12:1: clock name "a" is used at`},
		{"name taken", around("//carillon:clock name=a", goodMethod+"\nfunc RegisterOrders() {}"),
			"a.go:13:6: RegisterOrders is declared already; rename it"},

		{"callback missing", around("//carillon:clock name=a on-success=Clsoed", goodMethod+"\nfunc (o *Orders) Closed(ctx context.Context) {}"),
			`a.go:11:36: on-success=Clsoed: type Orders has no such method; did you mean "Closed"?`},
		{"callback with other output", around("//carillon:clock name=a on-success=Done",
			"func (o *Orders) Close(ctx context.Context) (Report, error) { return Report{}, nil }\nfunc (o *Orders) Done(ctx context.Context, n int) {}"),
			"a.go:13:18: method Done does not fit as on-success of Close; want func(context.Context, Report)"},
		{"success callback without output", around("//carillon:clock name=a on-success=Done",
			goodMethod+"\nfunc (o *Orders) Done(ctx context.Context, r Report) {}"),
			"want func(context.Context), because Close has no output"},
		{"failure callback", around("//carillon:clock name=a on-failure=Done",
			goodMethod+"\nfunc (o *Orders) Done(ctx context.Context) {}"),
			"a.go:13:18: method Done does not fit as on-failure of Close; want func(context.Context, error)"},
		{"callback that returns", around("//carillon:clock name=a on-failure=Done",
			goodMethod+"\nfunc (o *Orders) Done(ctx context.Context, err error) int { return 1 }"),
			"does not fit as on-failure of Close; want func(context.Context, error); it may return an error"},
		{"long name with callbacks", around("//carillon:clock name="+strings.Repeat("n", 120)+" on-failure=Done",
			goodMethod+"\nfunc (o *Orders) Done(ctx context.Context, err error) {}"),
			"is too long for a clock with callbacks; use at most 118 bytes: callbacks add to it"},
		{"max-result", around("//carillon:clock name=a max-result=300KiB", goodMethod), `max-result="300KiB" is out of range`},
		{"kill-grace", around("//carillon:clock name=a kill-grace=0s", goodMethod), `kill-grace="0s" must be more than zero`},
		{"stuck", around("//carillon:clock name=a stuck=kill", goodMethod), `stuck="kill" is not known`},
		{"weight", around("//carillon:clock name=a weight=0", goodMethod), `weight="0" is out of range`},
		{"flag with a value", around("//carillon:clock name=a idempotent=yes", goodMethod),
			`key "idempotent" takes no value; write idempotent alone`},
		{"proxy name taken", strings.Replace(around("//carillon:clock name=a", goodMethod+"\nfunc NewOrdersProxy() {}"), "//carillon:timer", "//carillon:timer proxy", 1),
			"a.go:13:6: NewOrdersProxy is declared already; rename it: the generated proxy has this name"},

		{"syntax error", "package shop\n\nfunc {", "a.go:3:6: expected"},
		{"build constraint", "//go:build never_built\n\npackage shop\n\n//carillon:timer\ntype T struct{}\n",
			"a.go:5:1: marker in a file with build constraints"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dir := write(t, map[string]string{"a.go": test.source})
			_, err := Dir(dir, Options{})
			var problems Problems
			ok := errors.As(err, &problems)
			require.True(t, ok, "got %v", err)
			require.Contains(t, strings.ReplaceAll(problems.Error(), dir+string(filepath.Separator), ""), test.want)
		})
	}
}

// All mistakes are told at once, in the order of the source.
func TestProblemsTogether(t *testing.T) {
	dir := write(t, map[string]string{"a.go": around("//carillon:clock every=x blocking=y", goodMethod)})
	_, err := Dir(dir, Options{})
	var problems Problems
	errors.As(err, &problems)
	require.Len(t, problems, 3)
	require.Equal(t, []int{1, 24, 35}, []int{problems[0].Pos.Column, problems[1].Pos.Column, problems[2].Pos.Column})
}

func TestDuplicateAcrossTypes(t *testing.T) {
	b := strings.ReplaceAll(around("//carillon:clock name=a", goodMethod), "Orders", "Stock")
	dir := write(t, map[string]string{
		"a.go": around("//carillon:clock name=a", goodMethod),
		"b.go": strings.ReplaceAll(b, "type Report struct{}", ""),
	})
	_, err := Dir(dir, Options{})
	require.ErrorContains(t, err, `b.go:11:1: clock name "a" is used at `+filepath.Join(dir, "a.go")+":11:1 already")
}

func TestCronHook(t *testing.T) {
	dir := write(t, map[string]string{"a.go": around(`//carillon:clock name=a cron="0 0 25 * * *" dialect=quartz`, goodMethod)})
	_, err := Dir(dir, Options{CheckCron: func(expr, dialect string) error {
		return errors.New(dialect + " hour 25 at " + expr[4:6])
	}})
	require.ErrorContains(t, err, `cron "0 0 25 * * *": quartz hour 25 at 25; try it with: carillon cron explain "0 0 25 * * *"`)
}

// Callback types are compared by import path, not by local name.
func TestRenamedImport(t *testing.T) {
	dir := write(t, map[string]string{
		"a.go": around("//carillon:clock name=a on-success=Done", "func (o *Orders) Close(ctx context.Context) (*big.Int, error) { return nil, nil }"),
		"b.go": "package shop\n\nimport (\n\t\"context\"\n\tlarge \"math/big\"\n)\n\nfunc (o *Orders) Done(ctx context.Context, n *large.Int) {}\n",
	})
	source, err := os.ReadFile(filepath.Join(dir, "a.go"))
	require.NoError(t, err)
	fixed := strings.Replace(string(source), `import "context"`, "import \"context\"\nimport \"math/big\"", 1)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.go"), []byte(fixed), 0o644))
	out, err := Dir(dir, Options{})
	require.NoError(t, err)
	require.Contains(t, string(out.Files[0].Content), `executor.HandleEnd(ex, "a.succeeded", executor.SuccessFunc(carillonQuiet(t.Done))`)
}

// A proxy names the types that it takes and gives, and so their imports.
func TestProxyImportsWhatItsTypesNeed(t *testing.T) {
	source := strings.NewReplacer(`import "context"`, "import (\n\t\"context\"\n\tlarge \"math/big\"\n)", "//carillon:timer", "//carillon:timer proxy").
		Replace(around("//carillon:clock name=b\n//carillon:clock name=a", "func (o *Orders) Close(ctx context.Context, in map[string]*large.Int) error { return nil }"))
	dir := write(t, map[string]string{"a.go": source})
	out, err := Dir(dir, Options{})
	require.NoError(t, err)
	code := string(out.Files[2].Content)
	require.Contains(t, code, `large "math/big"`)
	require.Contains(t, code, "func (p *OrdersProxy) Close(ctx context.Context, in map[string]*large.Int, opts ...proxy.Option) error {")
	require.Contains(t, code, `p.executor, "a", in, opts...)`)
	require.Equal(t, 1, strings.Count(code, ") Close("), "one function for a method with two clocks")
	_, err = out.Write()
	require.NoError(t, err)
	again, err := Dir(dir, Options{})
	require.NoError(t, err)
	require.Equal(t, out.Files, again.Files, "our own output is not read")

	plain := write(t, map[string]string{"a.go": around("//carillon:clock name=a", goodMethod)})
	out, err = Dir(plain, Options{})
	require.NoError(t, err)
	require.Nil(t, out.Files[2].Content, "nobody asked for one")
}

// Moving code between files and running again changes nothing.
func TestReproducible(t *testing.T) {
	one := write(t, map[string]string{"a.go": around("//carillon:clock name=b\n//carillon:clock name=a every=3s", goodMethod)})
	parts := strings.SplitN(around("//carillon:clock name=a every=3s\n//carillon:clock name=b", goodMethod), "// Close closes.", 2)
	two := write(t, map[string]string{
		"z.go": strings.Replace(parts[0], "import \"context\"\n", "", 1),
		"a.go": "package shop\n\nimport \"context\"\n\n// Close closes." + parts[1],
	})
	first, err := Dir(one, Options{})
	require.NoError(t, err)
	second, err := Dir(two, Options{})
	require.NoError(t, err)
	require.Equal(t, first.Files, second.Files)
}

func TestRun(t *testing.T) {
	dir := write(t, map[string]string{
		"shop/a.go":             around("//carillon:clock name=a every=3s", goodMethod),
		"plain/a.go":            "package plain\n",
		"shop/testdata/bad.go":  "package bad\n\n//carillon:tmier\n",
		"other/go.mod":          "module other\n",
		"other/a.go":            "package bad\n\n//carillon:tmier\n",
		"plain/" + ManifestFile: "{}",
	})
	tree := []string{dir + "/..."}
	var out bytes.Buffer

	require.ErrorIs(t, Run(tree, true, Options{}, &out), ErrStale)
	require.Contains(t, out.String(), "the file is missing")
	require.NoFileExists(t, filepath.Join(dir, "shop", GoFile))

	out.Reset()
	require.NoError(t, Run(tree, false, Options{}, &out))
	require.Contains(t, out.String(), "wrote "+filepath.Join(dir, "shop", GoFile))
	require.Contains(t, out.String(), "removed "+filepath.Join(dir, "plain", ManifestFile))

	out.Reset()
	require.NoError(t, Run(tree, true, Options{}, &out))
	require.Empty(t, out.String())

	// A changed marker is shown line by line.
	path := filepath.Join(dir, "shop", "a.go")
	require.NoError(t, os.WriteFile(path, []byte(around("//carillon:clock name=a every=4s", goodMethod)), 0o644))
	require.ErrorIs(t, Run(tree, true, Options{}, &out), ErrStale)
	require.Contains(t, out.String(), ": -\t\texecutor.Every(3*time.Second),")
	require.Contains(t, out.String(), ": +\t\texecutor.Every(4*time.Second),")

	// A mistake leaves the files alone.
	before, err := os.ReadFile(filepath.Join(dir, "shop", GoFile))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, []byte(around("//carillon:clock name=a every=x", goodMethod)), 0o644))
	require.Error(t, Run(tree, false, Options{}, &out))
	after, err := os.ReadFile(filepath.Join(dir, "shop", GoFile))
	require.NoError(t, err)
	require.Equal(t, before, after)

	// Without markers the stale files go, and then there is nothing to do.
	require.NoError(t, os.WriteFile(path, []byte("package shop\n"), 0o644))
	require.NoError(t, Run(tree, false, Options{}, &out))
	require.NoFileExists(t, filepath.Join(dir, "shop", GoFile))
	require.ErrorIs(t, Run(tree, false, Options{}, &out), ErrNoMarkers)
}

// Somebody else's file of the same name is not removed.
func TestForeignFileStays(t *testing.T) {
	dir := write(t, map[string]string{"a.go": "package shop\n", GoFile: "package shop\n"})
	out, err := Dir(dir, Options{})
	require.NoError(t, err)
	changes, err := out.Write()
	require.NoError(t, err)
	require.Empty(t, changes)
	require.FileExists(t, filepath.Join(dir, GoFile))
}

func FuzzMarker(f *testing.F) {
	f.Add(`//carillon:clock name=a cron="0 0 2 * * *" idempotent`)
	f.Add("//carillon:timer name=`x`")
	f.Add("// Carillon: clock")
	f.Fuzz(func(t *testing.T, text string) {
		r := &report{}
		m := parseMarker(text, tokenPosition(), r)
		if m == nil {
			return
		}
		readClock(m, Options{}, r)
		for _, o := range m.options {
			if o.pos.Offset < 0 || o.pos.Offset > len(text) || o.valuePos.Offset > len(text) {
				t.Fatalf("position outside of the comment: %+v", o)
			}
		}
	})
}

func tokenPosition() token.Position { return token.Position{Filename: "a.go", Line: 1, Column: 1} }
