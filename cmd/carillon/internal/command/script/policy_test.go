package script

import (
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/internal/apiclient"
)

// What no flag names stays as it is.
func TestCallbackFlags(t *testing.T) {
	now := &apiclient.CallbackPolicy{Hosts: []string{"a.example.com"}, MaxTimeout: "5s", PerHost: 4}
	for _, c := range []struct {
		args []string
		now  *apiclient.CallbackPolicy
		want *apiclient.CallbackPolicyWrite
	}{
		{nil, now, nil},
		{[]string{"--callback-hosts", "none"}, now, &apiclient.CallbackPolicyWrite{Hosts: []string{}, MaxTimeout: "5s", PerHost: 4}},
		{[]string{"--callback-hosts", "*,b.example.com:1"}, nil, &apiclient.CallbackPolicyWrite{Hosts: []string{"*", "b.example.com:1"}}},
		{[]string{"--callback-max-timeout", "1m", "--callbacks-per-host", "9"}, now, &apiclient.CallbackPolicyWrite{Hosts: []string{"a.example.com"}, MaxTimeout: "1m", PerHost: 9}},
		{[]string{"--new-callback-secret"}, now, &apiclient.CallbackPolicyWrite{Hosts: []string{"a.example.com"}, MaxTimeout: "5s", PerHost: 4, NewSecret: true}},
	} {
		var f callbackFlags
		flags := pflag.NewFlagSet("", pflag.ContinueOnError)
		f.add(flags)
		require.NoError(t, flags.Parse(c.args))
		require.Equal(t, c.want, f.changed(flags, c.now), "%q", c.args)
	}
}
