package executor_test

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"testing"

	"github.com/stretchr/testify/require"

	executor "github.com/carillon-sched/carillon/executor-sdk"
	"github.com/carillon-sched/carillon/executor-sdk/internal/fakeadmin"
	"github.com/carillon-sched/carillon/proto"
)

// verifyOffers hands scripts to a handler and returns what became of what Verify
// says there.
func verifyOffers(t *testing.T, keys []ed25519.PublicKey, scripts ...*proto.Script) []string {
	t.Helper()
	admin := startAdmin(t, &fakeadmin.Admin{})
	start(t, admin, func(ex *executor.Executor) {
		executor.HandleFunc(ex, "script.shell", func(ctx context.Context) error {
			return executor.Permanent(executor.TaskFrom(ctx).Script.Verify("shell", keys...))
		})
		executor.HandleFunc(ex, "close-day", func(ctx context.Context) error {
			require.Nil(t, executor.TaskFrom(ctx).Script)
			return nil
		})
	})
	s := session(t, admin, 1)
	require.NoError(t, s.Offer(offer(1000, "close-day")))
	saw(t, admin, results(1))
	var said []string
	for i, script := range scripts {
		require.NoError(t, s.Offer(offer(int64(i+1), "script.shell", func(o *proto.Offer) { o.Script = script })))
		r := resultOf(saw(t, admin, results(i+2)), int64(i+1))
		said = append(said, brief(r)+" "+r.GetError())
	}
	return said
}

func signedScript(t *testing.T, key ed25519.PrivateKey, change ...func(*proto.Script)) *proto.Script {
	t.Helper()
	content := []byte("echo hi\n")
	sum := sha256.Sum256(content)
	s := &proto.Script{Id: 2, Name: "greet", Revision: 3, Language: "shell", Content: content, Sha256: sum[:], Args: []string{"a"}}
	s.Signature = ed25519.Sign(key, proto.ScriptMessage(5, s.Id, s.Revision, s.Language, s.Sha256))
	for _, c := range change {
		c(s)
	}
	return s
}

func TestScriptsAreVerified(t *testing.T) {
	public, private, err := ed25519.GenerateKey(nil)
	require.NoError(t, err)
	other, _, err := ed25519.GenerateKey(nil)
	require.NoError(t, err)
	with := func(change func(*proto.Script)) *proto.Script { return signedScript(t, private, change) }
	replaced := with(func(s *proto.Script) {
		s.Content = []byte("rm -rf /\n")
		sum := sha256.Sum256(s.Content)
		s.Sha256 = sum[:]
	})
	said := verifyOffers(t, []ed25519.PublicKey{other, public},
		signedScript(t, private),
		with(func(s *proto.Script) { s.Content = []byte("rm -rf /\n") }),
		replaced,
		with(func(s *proto.Script) { s.Revision = 2 }),
		with(func(s *proto.Script) { s.Signature = nil }),
		with(func(s *proto.Script) { s.Language = "python" }),
		with(func(s *proto.Script) { s.Content, s.Sha256, s.Refusal = nil, nil, "scripts are off" }),
	)
	require.Equal(t, "SUCCEEDED ", said[0])
	for i, want := range []string{
		"has the digest", "no key that is trusted here", "no key that is trusted here", "no key that is trusted here",
		`is in "python", not in "shell"`, "the admin refuses it: scripts are off",
	} {
		require.Contains(t, said[i+1], "FAILED permanent")
		require.Contains(t, said[i+1], want)
	}
	require.Equal(t, "SUCCEEDED ", verifyOffers(t, nil, replaced)[0], "without a key the digest alone counts")
}
