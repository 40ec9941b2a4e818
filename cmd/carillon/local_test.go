package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// The commands of this file need no server.

func TestCronNext(t *testing.T) {
	term := newTerminal(t)
	r := term.run("cron", "next", "0 0 2 * * *", "--tz", "Asia/Shanghai", "--from", "2026-11-20T18:00:00Z", "-n", "2")
	require.Equal(t, result{0, "2026-11-22T02:00:00+08:00\n2026-11-23T02:00:00+08:00\n", ""}, r)

	r = term.run("cron", "next", "0 0 2 * * *", "-n", "1", "-v")
	require.Equal(t, 0, r.code)
	require.Regexp(t, `time zone rules: .+, rules [0-9a-f]{12}`, r.stderr)
	r = term.run("cron", "next", "0 0 0 30 2 ?", "--dialect", "quartz")
	require.Equal(t, result{0, "none\n", ""}, r)

	r = term.run("cron", "next", "0 0 12 1 1 ? 2027", "--from", "2026-01-01T00:00:00+08:00")
	require.Equal(t, result{0, "2027-01-01T12:00:00Z\nnone\n", ""}, r)

	for _, args := range [][]string{
		{"--tz", "Asia/Shanghia"}, {"--tz", "Local"}, {"--from", "yesterday"}, {"--dialect", "unix"}, {"-n", "-1"},
	} {
		require.Equal(t, 2, term.run(append([]string{"cron", "next", "0 0 2 * * *"}, args...)...).code, args)
	}
}

func TestCronExplain(t *testing.T) {
	term := newTerminal(t, "LANG=zh_CN.UTF-8")
	r := term.run("cron", "explain", "0 0 25 * * *", "--lang", "en")
	require.Equal(t, 1, r.code)
	require.Empty(t, r.stdout)
	require.Contains(t, r.stderr, "  0 0 25 * * *\n      ^^\n")

	r = term.run("cron", "explain", "0 0 2 ? * 6L", "--lang", "en")
	require.Equal(t, 0, r.code)
	require.Contains(t, r.stdout, "Friday")
	require.Contains(t, r.stderr, "dialect: quartz")
	require.Contains(t, term.run("cron", "explain", "0 0 2 ? * 6L").stdout, "周五", "the language comes from LANG")
	require.Equal(t, 2, term.run("cron", "explain", "* * * * *", "--lang", "fr").code)
}

func TestCronCheck(t *testing.T) {
	term := newTerminal(t)
	good := "# a comment\n" +
		"0 30 0 * * ?\tAsia/Shanghai\t2027-06-15T13:37:11Z\t2027-06-16T00:30+08:00 2027-06-17T00:30+08:00\n" +
		"0 30 22-2 15W MAY ? 2027\tUTC\t2027-05-14T03:00:00Z\t2027-05-14T22:30:00Z 2027-05-14T23:30Z none\n"
	r := term.pipe(good, "cron", "check", "-")
	require.Equal(t, result{0, "", "2 expressions checked, 0 mismatches\n"}, r)

	bad := good +
		"0 30 0 * * ?\tUTC\t2027-06-15T13:37:11Z\t2027-06-16T00:31Z\n" + // another time
		"0 30 0 * * ?\tUTC\t2027-06-15T13:37:11Z\t2027-06-16T08:30+08:00\n" + // the same instant, another offset
		"0 30 0 * * ?\tUTC\t2027-06-15T13:37:11Z\tnone\n" +
		"0 0 0 30 2 ?\tUTC\t2027-06-15T13:37:11Z\t2027-06-16T00:31Z\n" +
		"0 0 0 99 2 ?\tUTC\t2027-06-15T13:37:11Z\tnone\n" +
		"0 30 0 * * ?\tUTC\t2027-06-15T13:37:11Z\n" +
		"0 30 0 * * ?\tUTC\tnoon\tnone\n"
	r = term.pipe(bad, "cron", "check", "-")
	require.Equal(t, 1, r.code)
	for _, want := range []string{
		"line 4: 0 30 0 * * ?: fire 1: want 2027-06-16T00:31:00Z, got 2027-06-16T00:30:00Z\n",
		"line 5: 0 30 0 * * ?: fire 1: want 2027-06-16T08:30:00+08:00, got 2027-06-16T00:30:00Z\n",
		"line 6: 0 30 0 * * ?: fire 1: want none, got 2027-06-16T00:30:00Z\n",
		"line 7: 0 0 0 30 2 ?: fire 1: want 2027-06-16T00:31:00Z, got none\n",
		"line 8: 0 0 0 99 2 ?: ", "line 9: 0 30 0 * * ?: the line has 3 fields", "line 10: 0 30 0 * * ?: start: ",
	} {
		require.Contains(t, r.stdout, want)
	}
	require.Equal(t, "9 expressions checked, 7 mismatches\n", r.stderr)
	require.Equal(t, 1, term.pipe("", "cron", "check", "-").code, "an empty file proves nothing")
	require.Equal(t, 2, term.run("cron", "check", "/no/such/file").code)
}

func TestGenerate(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.go")
	write := func(marker string) {
		require.NoError(t, os.WriteFile(path, []byte("package a\n\nimport \"context\"\n\n//carillon:timer\ntype T struct{}\n\n"+
			marker+"\nfunc (T) M(context.Context) error { return nil }\n"), 0o600))
	}
	term := newTerminal(t)

	write(`//carillon:clock name=m cron="0 0 25 * * *"`)
	r := term.run("generate", dir)
	require.Equal(t, 1, r.code)
	require.Contains(t, r.stderr, path+`:8:30: cron "0 0 25 * * *": cron "0 0 25 * * *": column 5, hour: 25 is outside 0-23`)
	require.NoFileExists(t, filepath.Join(dir, "carillon_gen.go"))

	write(`//carillon:clock name=m cron="0 0 2 * * *"`)
	require.Equal(t, 1, term.run("generate", "-check", dir).code)
	r = term.run("generate", dir+"/...")
	require.Equal(t, 0, r.code, r.stderr)
	require.Contains(t, r.stdout, "wrote "+filepath.Join(dir, "carillon_gen.go"))
	require.Equal(t, result{0, "", ""}, term.run("generate", "--check", dir))
	require.Equal(t, 2, term.run("generate", "--chekc").code)
	require.Contains(t, term.run("generate", "--help").stdout, "carillon generate -check ./...")
}

func TestVersionAndCompletion(t *testing.T) {
	term := newTerminal(t)
	require.Contains(t, term.run("version").stdout, "carillon dev go1")
	require.Contains(t, term.run("--version").stdout, "carillon dev")
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		r := term.run("completion", shell)
		require.Equal(t, 0, r.code)
		require.Contains(t, r.stdout, "carillon")
	}
}

// Every command has a line of help that says what it does, and examples.
func TestHelp(t *testing.T) {
	term := newTerminal(t)
	for _, args := range [][]string{
		{"login"}, {"job"}, {"job", "run"}, {"run", "logs"}, {"executor", "token", "create"}, {"cron", "check"}, {"generate"},
	} {
		r := term.run(append(args, "--help")...)
		require.Equal(t, 0, r.code)
		require.Contains(t, r.stdout, "Examples:\n  ", args)
		require.Contains(t, r.stdout, "Usage:\n  carillon ", args)
	}
}

// TestCronExplainInChinese: mistakes with their place, warnings, and what never fires.
func TestCronExplainInChinese(t *testing.T) {
	term := newTerminal(t)
	r := term.run("cron", "explain", "0 0 25 * * *", "--lang", "zh")
	require.Equal(t, 1, r.code)
	require.Contains(t, r.stderr, "时：25 超出范围 0-23\n  0 0 25 * * *\n      ^^")
	require.NotContains(t, r.stderr, "outside")
	r = term.run("cron", "explain", "0 0 0 1 * MON", "--lang", "zh")
	require.Contains(t, r.stderr, "方言：seconds")
	require.Contains(t, r.stderr, "警告：同时限定了日期和星期")

	for lang, want := range map[string][2]string{
		"en": {"This never fires: no such date exists.", "It never fires again: all its dates have passed."},
		"zh": {"永远不会触发：不存在这样的日期。", "不会再触发：所有日期均已过去。"},
	} {
		r = term.run("cron", "explain", "0 0 31 2 *", "--lang", lang)
		require.Equal(t, 0, r.code)
		require.Contains(t, r.stdout, "\n"+want[0]+"\n")
		require.NotContains(t, r.stderr, want[0], "once")
		require.Contains(t, term.run("cron", "explain", "0 0 2 1 1 ? 2020", "--lang", lang).stdout, "\n"+want[1]+"\n")
	}
	require.Contains(t, term.run("cron", "explain", "30 2 * * *", "--lang", "en", "--tz", "Europe/Berlin").stdout,
		"At 02:30 every day (Europe/Berlin), at the end of the gap when clocks go forward over a fire time, once when clocks go back over it\n")
}
