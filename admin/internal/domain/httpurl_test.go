package domain

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestHTTPAddresses(t *testing.T) {
	for address, says := range map[string]string{
		"https://example.com/hook": "", "http://[2001:db8::1]:8080/": "", "": "",
		"ftp://example.com": "is not an http or https address", "https://:443/": "is not an http or https address",
		"https://a:b@example.com":    "must not contain a user name or password",
		"https://example.com:99999/": "has a port that is not from 1 to 65535", "https://example.com:0/": "has a port that is not from 1 to 65535",
	} {
		var c checker
		c.alert(&Alert{WebhookURL: address})
		if says == "" {
			require.Empty(t, c.fields, address)
			continue
		}
		require.Len(t, c.fields, 1, address)
		require.Equal(t, says, c.fields[0].Message, address)
	}
}
