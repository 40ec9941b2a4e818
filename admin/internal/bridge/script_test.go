package bridge

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"errors"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/proto"
)

// shelf is a store with one script.
type shelf struct {
	store.Scripts
	policy domain.ScriptPolicy
	down   error
}

func (s *shelf) FindScriptPolicy(context.Context, domain.TenantID) (domain.ScriptPolicy, error) {
	return s.policy, s.down
}

func (s *shelf) FindScript(_ context.Context, tenant domain.TenantID, use domain.ScriptUse) (domain.Script, error) {
	if use.ID != 7 || tenant != 3 {
		return domain.Script{}, domain.Errorf(domain.CodeNotFound, "gone")
	}
	return domain.Script{ID: 7, Name: "report", Language: "shell", Version: 2, Content: "true"}, nil
}

// offers makes an offer of each spec, for tenant 3.
func offers(specs ...*domain.JobSpec) (frames []*proto.Offer, made []store.OfferResult) {
	for i, spec := range specs {
		e := domain.Execution{ID: domain.ExecutionID(i + 1), TenantID: 3}
		frames = append(frames, offerFrame(&e, spec))
		made = append(made, store.OfferResult{Execution: e, Spec: spec})
	}
	return frames, made
}

// An input that an earlier version stored in another charset goes out as UTF-8.
func TestStoredInputsGoOutAsUTF8(t *testing.T) {
	t.Parallel()
	frames, _ := offers(&domain.JobSpec{Handler: "h", Input: []byte("{\"city\":\"\xb0\xd9\"}")})
	require.Equal(t, "{\"city\":\"\uFFFD\"}", string(frames[0].Input))
}

func TestWhatGoesWithAnOffer(t *testing.T) {
	t.Parallel()
	s := &shelf{policy: domain.ScriptPolicy{Languages: []string{"shell"}}}
	d := &Scripts{Store: s, Logger: slog.New(slog.DiscardHandler)}
	plain := &domain.JobSpec{Handler: "close-day"}
	script := &domain.JobSpec{Handler: "script.shell", Script: &domain.ScriptUse{ID: 7, Args: []string{"-v"}}}
	frames, made := offers(plain, script, &domain.JobSpec{Handler: "script.shell", Script: &domain.ScriptUse{ID: 8}},
		&domain.JobSpec{Handler: "script.shell"}, &domain.JobSpec{Handler: "script.python", Script: &domain.ScriptUse{ID: 7}}, &domain.JobSpec{Handler: "http.request"})
	ready, left := d.add(frames, made)
	require.Equal(t, frames, ready)
	require.Empty(t, left)
	require.Nil(t, ready[0].Script)
	require.Equal(t, []any{int64(2), "true", []string{"-v"}, ""}, []any{ready[1].Script.Revision, string(ready[1].Script.Content), ready[1].Script.Args, ready[1].Script.Refusal})
	require.Equal(t, "the job's script was deleted", ready[2].Script.Refusal)
	require.Equal(t, "the job names no script", ready[3].Script.Refusal)
	require.Contains(t, ready[4].Script.Refusal, "scripts in python are off")
	require.Contains(t, ready[5].Script.Refusal, "HTTP calls by agents are off")
	for _, o := range ready[2:] {
		require.Empty(t, o.Script.Content)
	}
	s.policy.HTTP = true
	frames, made = offers(&domain.JobSpec{Handler: "http.request"})
	ready, _ = d.add(frames, made)
	require.Nil(t, ready[0].Script)
}

// Without the database agents' offers wait; the others do not.
func TestOffersOfScriptsWaitForTheDatabase(t *testing.T) {
	t.Parallel()
	d := &Scripts{Store: &shelf{down: errors.New("no database")}, Logger: slog.New(slog.DiscardHandler)}
	frames, made := offers(&domain.JobSpec{Handler: "close-day"}, &domain.JobSpec{Handler: "script.shell", Script: &domain.ScriptUse{ID: 7}})
	ready, left := d.add(frames, made)
	require.Equal(t, frames[:1], ready)
	require.Equal(t, frames[1:], left)
}

func TestScriptsAreSignedAsTheSpecificationSays(t *testing.T) {
	t.Parallel()
	public, private, err := ed25519.GenerateKey(nil)
	require.NoError(t, err)
	sum := sha256.Sum256([]byte("true"))
	signature := SignScripts(private)(domain.Script{TenantID: 3, ID: 7, Language: "shell"}, 2, sum[:])
	require.True(t, ed25519.Verify(public, proto.ScriptMessage(3, 7, 2, "shell", sum[:]), signature))
}
