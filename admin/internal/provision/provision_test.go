package provision

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func read(t *testing.T, text string) (*Declaration, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "p.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return Read(path, func(name string) (string, bool) { return "a value", name == "SET" })
}

// told are the mistakes without their files.
func told(err error) (out []string) {
	wrong, is := errors.AsType[*Error](err)
	if !is {
		return nil
	}
	for _, p := range wrong.Problems {
		p.File = ""
		out = append(out, strings.TrimPrefix((&Error{Problems: []Problem{p}}).Error(), "the provision file cannot be used:\n  "))
	}
	return out
}

func TestFilesThatCannotBeRead(t *testing.T) {
	for text, want := range map[string]string{
		"":                              ":1: the file declares nothing",
		"# nothing\n":                   ":1: the file declares nothing",
		"kind: [\n":                     ":1: a value is missing after [, { or a comma; the line is: kind: [",
		"- a":                           ":1: want an object with fields",
		"a: &a [*a]\n":                  ":1: the alias *a stands inside of what it repeats",
		strings.Repeat("#", maxBytes+1): "has more than 1048576 bytes",
	} {
		_, err := read(t, text)
		require.Len(t, told(err), 1, text)
		require.Contains(t, told(err)[0], want)
	}
	_, err := Read(filepath.Join(t.TempDir(), "nowhere"), os.LookupEnv)
	require.ErrorContains(t, err, "nowhere: no such file")
	_, err = Read(t.TempDir(), os.LookupEnv)
	require.ErrorContains(t, err, "it has no .yaml, .yml or .json file")
	require.Contains(t, (&Error{Problems: make([]Problem, shownProblems+5)}).Error(), "\n  and 5 more")
}

// Mistakes that the file alone shows are told at once, each with its line.
func TestHeads(t *testing.T) {
	d, err := read(t, `kind: Tenant
name: shop
---
tenants: [{name: shop}]
---
name: x
---
kind: Executor
name: [web]
---
kind: Tenant
name: web
tenant: shop
---
kind: Calendar
name: cn
tenant: nowhere
---
kind: Connection
name: mq
tenant: shop
secrets:
  password: a word
  token: ${{ env:NOT_SET }}
---
kind: Connection
name: named
secrets: {password: "${{ password }}"}
---
kind: ApiKey
name: a
secrets: {key: "${{ env:SET }}"}
---
kind: ApiKey
name: b
tenant: shop
secrets: {key: "${{ env:SET }}"}
---
kind: Job
name: close
spec:
  description: ${{ env:NOT_SET }}
  alert: {webhookSecret: clear}
---
kind: Job
name: open
spec:
  description: ${{ env:NOT_SET }}
`)
	require.NoError(t, err)
	d.fill(func(string) []string { return nil })
	require.Equal(t, []string{
		":4: lists such as tenants and users are the form of an earlier version: write a document for each, such as kind: Tenant and name: shop (docs/guide/provision.md)",
		":6: x: kind: is missing: a document has kind, name and spec",
		":9: Executor: name: must be a text",
		":13: Tenant web: tenant: must be left out: Tenant belongs to the cluster",
		":17: Calendar cn: tenant: there is no tenant \"nowhere\" in the file: add its document, kind: Tenant",
		":23: Connection mq: secrets.password: a secret must not stand in this file: say where it is, ${{ file:PATH }} or ${{ env:VARIABLE }}",
		":24: Connection mq: secrets.token: ${{ env:NOT_SET }}: the variable is not set",
		":28: Connection named: secrets.password: a secret must not stand in this file: say where it is, ${{ file:PATH }} or ${{ env:VARIABLE }}",
		":37: ApiKey b: secrets.key: it is the same as that of ApiKey a: each token and key has its own",
		":42: Job close: spec.description: ${{ env:NOT_SET }}: the variable is not set",
		":43: Job close: spec.alert.webhookSecret: a secret must not stand in this file: say where it is, ${{ file:PATH }} or ${{ env:VARIABLE }}",
		":48: Job open: spec.description: ${{ env:NOT_SET }}: the variable is not set",
	}, told(d.err()))
}

func TestBounds(t *testing.T) {
	d, err := read(t, strings.Repeat("---\n{kind: Executor, name: a}\n", maxDocuments+2))
	require.NoError(t, err)
	require.Equal(t, []string{":2002: Executor a: there are more than 1000 documents: apply the others with carillon apply"}, told(d.err()))
	d, err = read(t, strings.Repeat("---\n{kind: User, name: a}\n", maxUsers+2))
	require.NoError(t, err)
	require.Equal(t, []string{":202: User a: there are more than 100 users: make the others through the API"}, told(d.err()))
}

// A folder has the documents of all its files. Paths count from the folder of the file.
func TestAFolder(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"b.yaml": "kind: User\nname: admin\nsecrets: {password: \"${{ file:password }}\"}\n", "a.yml": "{kind: Tenant, name: shop}\n---\n{kind: Job, name: j, tenant: shop}\n", "password": "a bell in the tower\r\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	d, err := Read(dir, os.LookupEnv)
	require.NoError(t, err)
	d.fill(func(string) []string { return nil })
	require.NoError(t, d.err())
	require.Equal(t, "1 Tenant, 1 Job, 1 User", d.Summary())
	require.Equal(t, "a bell in the tower", d.AdminPassword())
	require.Equal(t, []string{":3: User admin: secrets.password: it is given by --admin-password-file or CARILLON_ADMIN_PASSWORD, too: leave one of them out"}, told(d.Given()))
}

// FuzzRead: any file is judged.
func FuzzRead(f *testing.F) {
	f.Add("{kind: JoinToken, name: a, tenant: b, secrets: {token: \"${{ env:X }}\"}}")
	f.Add("a: &a [*a]\ntenants: *a")
	f.Add("kind: Job\nspec: {alert: {webhookSecret: [1]}}\nsecrets: 1")
	f.Fuzz(func(t *testing.T, text string) {
		d, err := read(t, text)
		require.NotEqual(t, d == nil, err == nil)
		if err != nil {
			require.NotEmpty(t, told(err))
			return
		}
		d.fill(func(string) []string { return nil })
		_ = d.AdminPassword()
		if err := d.err(); err != nil {
			require.NotEmpty(t, told(err))
		}
	})
}
