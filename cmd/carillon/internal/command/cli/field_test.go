package cli

import (
	"encoding/json"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/internal/apiclient"
)

// A field of the API is named by the flag or the argument that holds it; what the
// command has no name for keeps that of the API.
func TestFieldsAreNamedAsTheyAreTyped(t *testing.T) {
	cmd := &cobra.Command{Use: "cancel EXECUTOR/HANDLER [KEY...]", Run: func(*cobra.Command, []string) {}}
	for _, flag := range []string{"at", "input", "max-attempts", "label", "prefix", "until", "instance", "secret-file", "status"} {
		cmd.Flags().String(flag, "", "")
	}
	root := &cobra.Command{Use: "carillon"}
	root.AddCommand(New("").ServerFlags(Group("timer", "", "", cmd)))
	NameField(cmd, "body.new", "the new password")
	root.SetArgs([]string{"timer", "cancel", "shop/mail", "a", "b", "--status", "x7"})
	require.NoError(t, root.Execute())

	for location, want := range map[string]string{
		"body.at": "--at", "query.at": "--at", "body.maxAttempts": "--max-attempts", "body.labels[1]": "--label", "query.keyPrefix": "--prefix",
		"query.to": "--until", "body.instanceId": "--instance", "body.secret": "--secret-file", "body.input.order": "--input (order)",
		"body.executor": "EXECUTOR/HANDLER", "body.keys": "KEY", "body.new": "the new password",
		"body.url": "", "body.output": "", "body.schedule.expr": "", "body": "", "header.If-Match": "",
	} {
		require.Equal(t, want, fieldName(cmd, apiclient.ProblemItem{Location: location}), location)
	}
	require.Equal(t, "--status", fieldName(cmd, apiclient.ProblemItem{Location: "body.match.status[0]"}), "of an object, a flag that was given")
	require.Empty(t, fieldName(cmd, apiclient.ProblemItem{Location: "body.match.labels"}), "and no other flag")
	require.Equal(t, "narrow it by state, --instance or jobId; --until is right", asFlags(cmd, "narrow it by state, instanceId or jobId; --until is right"))
	require.Equal(t, "add --max-attempts to it", asFlags(cmd, "add maxAttempts=true to it"))
	for value, want := range map[string]string{"shop/mail": "EXECUTOR/HANDLER", "b": "KEY", "x7": "--status", "c": ""} {
		raw, err := json.Marshal(value)
		require.NoError(t, err)
		require.Equal(t, want, fieldName(cmd, apiclient.ProblemItem{Location: "path.id", Value: raw}), value)
	}
}

func TestARefusedFlagIsAMistakeOfUsage(t *testing.T) {
	cmd := &cobra.Command{Use: "set"}
	cmd.Flags().String("at", "", "")
	problem := func(code apiclient.ProblemCode, locations ...string) error {
		p := &apiclient.Problem{Status: 422, Code: code, Detail: "body.at: is no instant"}
		for _, l := range locations {
			p.Errors = append(p.Errors, apiclient.ProblemItem{Location: l})
		}
		return p
	}
	require.Equal(t, ExitUsage, CodeFor(cmd, problem("validation_failed", "body.at")))
	require.Equal(t, ExitFailed, CodeFor(cmd, problem("validation_failed", "body.at", "body.other")))
	require.Equal(t, ExitFailed, CodeFor(cmd, problem("validation_failed")))
	require.Equal(t, ExitFailed, CodeFor(cmd, problem("unfit_input", "body.at")))
}
