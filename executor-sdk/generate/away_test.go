package generate

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// shopSource is a package whose handlers nobody else can import.
const shopSource = `package main

import (
	"context"
	"time"
	_ "database/sql" // what callers must not inherit
)

//carillon:timer proxy=../shopclient
type Orders struct{}

type (
	// CloseDay says which day.
	CloseDay struct {
		Day  string ` + "`json:\"day\"`" + ` // as 2006-01-02
		Mode Mode
		Tags List[Tag]
		self *CloseDay
	}

	// Mode is full or totals.
	Mode string // a word
)

type List[T any] []T

type Tag struct{ Name string }

// Method is not copied.
func (Tag) Method() {}

// Report is what comes of it.
type Report struct {
	Took time.Duration
	By   map[string][]Line
}

type Line = struct{ N int }

type unneeded struct{}

//carillon:clock name=close-day
func (o *Orders) Close(ctx context.Context, in CloseDay) (*Report, error) { return nil, nil }

func main() {}
`

func TestAProxyElsewhereTakesItsTypesAlong(t *testing.T) {
	root := write(t, map[string]string{"shop/main.go": shopSource})
	var out bytes.Buffer
	require.NoError(t, Run([]string{root + "/..."}, false, Options{}, &out))
	client := filepath.Join(root, "shopclient", ClientFile)
	code, err := os.ReadFile(client)
	require.NoError(t, err)
	text := string(code)
	require.True(t, strings.HasPrefix(text, header))
	require.Contains(t, text, "\npackage shopclient\n")
	require.Contains(t, text, "func (p *OrdersProxy) Close(ctx context.Context, in CloseDay, opts ...proxy.Option) (*Report, error) {")
	for _, want := range []string{
		"// CloseDay says which day.\ntype CloseDay struct", "// as 2006-01-02", "// Mode is full or totals.\ntype Mode string // a word",
		"type List[T any] []T", "type Tag struct{ Name string }", "type Line = struct{ N int }",
	} {
		require.Contains(t, text, want)
	}
	for _, not := range []string{"unneeded", "sql", "carillon:", "Method"} {
		require.NotContains(t, strings.TrimPrefix(text, header), not)
	}
	require.NoFileExists(t, filepath.Join(root, "shop", ProxyFile))

	// Nothing to do the second time, also when the folder itself is visited.
	require.NoError(t, Run([]string{root + "/..."}, true, Options{}, &out))

	// What is not asked for any more goes away.
	source := filepath.Join(root, "shop", "main.go")
	require.NoError(t, os.WriteFile(source, []byte(strings.Replace(shopSource, "proxy=../shopclient", "proxy", 1)), 0o600))
	require.ErrorIs(t, Run([]string{root + "/shop"}, true, Options{}, &out), ErrStale)
	out.Reset()
	require.NoError(t, Run([]string{root + "/shop"}, false, Options{}, &out))
	require.Contains(t, out.String(), "wrote "+filepath.Join(root, "shop", ProxyFile))
	require.Contains(t, out.String(), "removed "+client)
	require.NoFileExists(t, client)
	require.FileExists(t, filepath.Join(root, "shop", ProxyFile))
}

// The folder's package keeps its name, and a file in it is somebody's own.
func TestAProxyJoinsThePackageThatIsThere(t *testing.T) {
	root := write(t, map[string]string{
		"shop/main.go": shopSource, "shopclient/doc.go": "package orders\n", "shopclient/doc_test.go": "package orders_test\n",
	})
	require.NoError(t, Run([]string{root + "/shop"}, false, Options{}, &bytes.Buffer{}))
	code, err := os.ReadFile(filepath.Join(root, "shopclient", ClientFile))
	require.NoError(t, err)
	require.Contains(t, string(code), "\npackage orders\n")
}

func TestTwoPackagesDoNotShareAFolderForProxies(t *testing.T) {
	root := write(t, map[string]string{"a/main.go": shopSource, "b/main.go": shopSource})
	err := Run([]string{root + "/..."}, false, Options{}, &bytes.Buffer{})
	require.ErrorContains(t, err, "both write")
	require.NoDirExists(t, filepath.Join(root, "shopclient"))
}

func TestTypesThatCannotBeCopied(t *testing.T) {
	for name, c := range map[string]struct{ old, with, want string }{
		"own JSON":      {"func main() {}", "func (*Tag) UnmarshalJSON([]byte) error { return nil }", "type Tag has the method UnmarshalJSON, so it cannot be copied to proxy=../shopclient; move it to a package of its own"},
		"a constant":    {"struct{ N int }", "struct{ N [size]int }\n\nconst size = 3", "names size, which cannot be copied"},
		"not exported":  {"in CloseDay)", "in unneeded)", "type unneeded is not exported, so no other package can call Close; rename it to Unneeded"},
		"the same name": {"type Tag struct{ Name string }", "type Tag struct{ Name OrdersProxy }\n\ntype OrdersProxy struct{}", "OrdersProxy is declared already"},
		"no folder":     {"proxy=../shopclient", "proxy=true", `proxy="true" is no folder beside this one`},
		"no name":       {"proxy=../shopclient", "proxy=../1234", `"1234" makes no package name`},
		"two imports":   {"By   map[string][]Line", "By by.Time", "is called time here"},
	} {
		t.Run(name, func(t *testing.T) {
			source := strings.Replace(shopSource, c.old, c.with, 1)
			files := map[string]string{"shop/main.go": source}
			if name == "two imports" {
				files["shop/main.go"] = strings.Replace(source, "By by.Time", "By Other", 1)
				files["shop/other.go"] = "package main\n\nimport time \"text/template\"\n\ntype Other struct{ T time.Template }\n"
			}
			_, err := Dir(filepath.Join(write(t, files), "shop"), Options{})
			require.ErrorContains(t, err, c.want)
		})
	}
}
