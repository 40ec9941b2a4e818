package domain

import (
	"strings"
	"testing"
)

func TestErrorLine(t *testing.T) {
	for text, want := range map[string]string{
		"": "", " \n\t\n": "", "no route to db\nat main.go:7": "no route to db", "\r\n  502 Bad Gateway\r\nbody": "502 Bad Gateway",
		"red \x1b[31mtext": "red  [31mtext", "bad \xff byte": "bad \uFFFD byte",
		strings.Repeat("编", 300): strings.Repeat("编", 199) + "…", strings.Repeat("编", 200): strings.Repeat("编", 200),
	} {
		if got := ErrorLine(text); got != want {
			t.Errorf("ErrorLine(%q) = %q, want %q", text, got, want)
		}
	}
}
