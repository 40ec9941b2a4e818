package domain

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func TestNormalError(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "connection refused": "connection refused",
		"dial tcp 10.0.0.1:3306: connect: connection refused":           "dial tcp #:#: connect: connection refused",
		"order 4711 of 12.5 EUR\nat main.go:7":                          "order # of # EUR",
		`customer "Ann's" has no account 'x y'`:                         "customer <text> has no account <text>",
		"can't read /var/lib/x/7.csv: no such file":                     "can't read <path>: no such file",
		"GET https://pay.example/v1/orders/77?x=1 (status=502)":         "GET <path>=# (status=#)",
		"job 01HV5Z3M9QK7X2B4N6P8R0S1T2 failed at 2026-11-29T19:36:17Z": "job <id> failed at <time>",
		"on 2026-11-29 19:36:17 after 1m3.5s":                           "on <time> <time> after <time>",
		"id=6ba7b810-9dad-11d1-80b4-00c04fd430c8, ptr 0xc000123":        "id=<id>, ptr <id>",
		"deadbeef is a word, deadbee1 is not":                           "deadbeef is a word, <id> is not",
		"订单 12 失败":                                                      "订单 # 失败",
		"it's \"open":                                                   "it's \"open",
		" two   blanks\tand\r\nanother":                                 "two blanks and",
	} {
		require.Equal(t, want, NormalError(text), text)
	}
	for _, text := range []string{strings.Repeat("é", 2000), "\xff\xfe bytes", strings.Repeat("'", 999), "é'"} {
		require.LessOrEqual(t, len(NormalError(text)), 3*errorTextRead)
	}
}

func TestErrorOf(t *testing.T) {
	e := Execution{State: Failed, Reason: ReasonHandlerFailed, ErrorKind: "io", Error: "order 1 not found", Message: "m"}
	one, text := ErrorOf(&e)
	require.Equal(t, "io handler_failed: order # not found", text)
	e.Error = "order 27 not found"
	other, _ := ErrorOf(&e)
	require.Equal(t, one, other)
	e.ErrorKind = "db"
	other, _ = ErrorOf(&e)
	require.NotEqual(t, one, other, "the kind is a part of it")
	parsed, ok := ParseFingerprint(other.String())
	require.True(t, ok)
	require.Equal(t, other, parsed)
	_, ok = ParseFingerprint("12")
	require.False(t, ok)

	_, text = ErrorOf(&Execution{State: Lost, Reason: ReasonLeaseExpired, Message: "silent since 12:00:01"})
	require.Equal(t, "lease_expired: silent since <time>", text)
	_, text = ErrorOf(&Execution{State: TimedOut})
	require.Equal(t, "timed_out", text)
	_, text = ErrorOf(&Execution{State: Failed, Reason: ReasonSetAside, ErrorKind: "io", Error: "of an attempt before", Message: "row 7"})
	require.Equal(t, "set_aside: row #", text)
	_, text = ErrorOf(&Execution{State: Failed, Error: strings.Repeat("é", 500)})
	require.LessOrEqual(t, len(text), ErrorTextSize)
	require.True(t, utf8.ValidString(text))
	for _, s := range []State{Succeeded, Cancelled, Missed, Running} {
		none, text := ErrorOf(&Execution{State: s, Error: "x"})
		require.Equal(t, []any{Fingerprint(0), ""}, []any{none, text})
	}
}

// A kind that is the reason, too, is said once.
func TestErrorOfSaysAKindOnce(t *testing.T) {
	_, text := ErrorOf(&Execution{State: Failed, Reason: ReasonPermanent, ErrorKind: "permanent", Error: "the card is stolen"})
	require.Equal(t, "permanent: the card is stolen", text)
	_, text = ErrorOf(&Execution{State: Failed, Reason: ReasonHandlerFailed, ErrorKind: "io", Error: "x"})
	require.Equal(t, "io handler_failed: x", text)
}

func BenchmarkErrorOf(b *testing.B) {
	e := Execution{State: Failed, Reason: ReasonHandlerFailed, ErrorKind: "io", Error: "dial tcp 10.0.0.1:3306: order 6ba7b810-9dad-11d1-80b4-00c04fd430c8 at /var/lib/x"}
	for b.Loop() {
		ErrorOf(&e)
	}
}
