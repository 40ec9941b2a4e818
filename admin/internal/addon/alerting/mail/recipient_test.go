package mail

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/internal/testenv"
)

func TestRecipients(t *testing.T) {
	some := Recipients{Domains: []string{"Example.com", ".example.org"}, Operators: []string{"Ops <ops@elsewhere.example>"}}
	for address, want := range map[string]bool{
		"ann@example.com": true, "Ann <ann@EXAMPLE.com>": true, "a@x.example.org": true, "a@x.y.example.org": true,
		"OPS@elsewhere.example": true, `"a@evil.example"@example.com`: true,
		"ann@x.example.com": false, "ann@example.org": false, "ann@evilexample.com": false, "ann@evilexample.org": false, "ann@example.com.evil.example": false,
		"dev@elsewhere.example": false, "ann@example.com, eve@evil.example": false, `"ann@example.com" <eve@evil.example>`: false, "ann": false, "": false,
	} {
		err := some.Check(address)
		require.Equal(t, want, err == nil, "%s: %v", address, err)
	}
	require.ErrorContains(t, some.Check("eve@evil.example"), `no mails to the domain "evil.example", but to Example.com, .example.org; its operator can list others (--mail-domains)`)
	require.NoError(t, Recipients{Domains: []string{"any"}}.Check("eve@evil.example"))
	for _, good := range []string{"any", "example.com", ".example.com", "localhost"} {
		require.NoError(t, CheckDomain(good))
	}
	for _, bad := range []string{"", ".", "*", "a@example.com", "*example.com", "*.example.com", "..example.com", "example.com.", "a b", "http://x"} {
		require.ErrorContains(t, CheckDomain(bad), "use example.com", bad)
	}
}

// TestMailsToOtherDomains: the mail server gets no mail for another domain.
func TestMailsToOtherDomains(t *testing.T) {
	server := testenv.SMTP(t)
	n := notice()
	for _, address := range []string{"eve@evil.example", "eve@sub.example.com", `"ann@example.com" <eve@evil.example>`} {
		n.Target = address
		err := sender(t, server).Send(t.Context(), n)
		require.True(t, permanent(err), "%v", err)
		require.ErrorContains(t, err, "--mail-domains")
	}
	require.Empty(t, server.Mails())
	n.Target = "ann@example.com" // the sender's own domain
	require.NoError(t, sender(t, server).Send(t.Context(), n))
}
