package web

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
)

type textBody struct {
	Body struct {
		Text string `json:"text,omitempty"`
	}
}

// shareServer answers with a text of so many bytes, and lets the bearer's tenant be 1.
func shareServer(op Operation, size int, inside func()) *Server {
	s := New(Options{
		Document: &huma.OpenAPI{Info: &huma.Info{}}, Metrics: prometheus.NewRegistry(), Logger: slog.New(slog.DiscardHandler), Closing: func() bool { return false },
		Authenticate: func(context.Context, string, string) (auth.Identity, error) {
			return auth.Identity{Kind: auth.KindUser, User: 1, Tenant: 1}, nil
		},
		CallsPerSecond: func(context.Context, domain.TenantID) (int64, error) { return 0, nil },
	})
	op.Path, op.ID, op.Tag = "/x", "x", "x"
	answer := func() (*textBody, error) {
		inside()
		out := &textBody{}
		out.Body.Text = strings.Repeat("x", size)
		return out, nil
	}
	if op.Method == http.MethodGet {
		Register(s, SignedIn, op, func(context.Context, auth.Identity, *struct{}) (*textBody, error) { return answer() })
	} else {
		Register(s, SignedIn, op, func(context.Context, auth.Identity, *textBody) (*textBody, error) { return answer() })
	}
	return s
}

// unread is a client that reads nothing until it may.
type unread struct {
	*httptest.ResponseRecorder
	until chan struct{}
}

func (u unread) Write(p []byte) (int, error) {
	<-u.until
	return u.ResponseRecorder.Write(p)
}

func ask(s *Server, method, body string, w http.ResponseWriter) {
	r := httptest.NewRequest(method, "/x", strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer x")
	s.ServeHTTP(w, r)
}

// free reports whether a budget has a share left for another tenant.
func free(t *testing.T, b *budget, size int64) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	done, err := b.take(ctx, owner{tenant: 2}, size)
	if err == nil {
		done()
	}
	return err == nil
}

// Bodies, computations and large answers hold a share during the computation, and none
// while the client reads.
func TestComputationsHoldAShare(t *testing.T) {
	large := `{"text":"` + strings.Repeat("y", quickBody) + `"}`
	for name, tt := range map[string]struct {
		op       Operation
		body     string
		computes bool // in the operation
	}{
		"a computation": {Operation{Method: http.MethodPost, Computes: true}, `{}`, true},
		"a large body":  {Operation{Method: http.MethodPost}, large, false},
		"both":          {Operation{Method: http.MethodPost, Computes: true}, large, true},
		"a small body":  {Operation{Method: http.MethodPost}, `{}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var s *Server
				enter := make(chan struct{})
				s = shareServer(tt.op, 10, func() { <-enter })
				s.budgets.computing = newBudget(1, 1, "computations")
				client := unread{httptest.NewRecorder(), make(chan struct{})}
				go ask(s, tt.op.Method, tt.body, client)
				synctest.Wait()
				require.Equal(t, !tt.computes, free(t, s.budgets.computing, 1))
				close(enter)
				synctest.Wait() // the client does not read
				require.True(t, free(t, s.budgets.computing, 1))
				close(client.until)
				synctest.Wait()
				require.Equal(t, http.StatusOK, client.Code)

				// If the share of a tenant is taken, its next request is refused after a while.
				done, err := s.budgets.computing.take(t.Context(), owner{tenant: 1}, 1)
				require.NoError(t, err)
				refused := httptest.NewRecorder()
				ask(s, tt.op.Method, tt.body, refused)
				want := http.StatusOK
				if tt.computes || len(tt.body) > quickBody {
					want = http.StatusTooManyRequests
				}
				require.Equal(t, want, refused.Code, refused.Body)
				done()
				require.Zero(t, s.budgets.computing.Owners())
			})
		})
	}
}

// An unread answer holds its bytes of the budget, and nothing else. When there
// are too many of them, the next one is refused.
func TestUnreadAnswersHoldTheirBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := shareServer(Operation{Method: http.MethodGet, Large: true}, 100<<10, func() {})
		s.budgets.sending = newBudget(300<<10, 150<<10, "bytes of answers that nobody has read")
		client := unread{httptest.NewRecorder(), make(chan struct{})}
		go ask(s, http.MethodGet, "", client)
		synctest.Wait()
		require.True(t, free(t, s.budgets.answers, largeAnswer))
		require.True(t, free(t, s.budgets.computing, 1))
		require.Equal(t, 1, s.budgets.sending.Owners())
		refused := httptest.NewRecorder()
		ask(s, http.MethodGet, "", refused)
		require.Equal(t, http.StatusTooManyRequests, refused.Code)
		require.Empty(t, refused.Header().Get("ETag"))
		close(client.until)
		synctest.Wait()
		require.Equal(t, http.StatusOK, client.Code)
		for _, b := range []*budget{s.budgets.sending, s.budgets.answers, s.budgets.computing} {
			require.Zero(t, b.Owners())
		}
	})
}

// Requests that wait for another host hold a share as long as they wait, and computations have
// another one.
func TestRequestsToOtherHostsHoldAShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		enter := make(chan struct{})
		s := shareServer(Operation{Method: http.MethodPost, Reaches: true}, 10, func() { <-enter })
		s.budgets.reaching = newBudget(2, 1, "requests to other hosts")
		first := httptest.NewRecorder()
		go ask(s, http.MethodPost, `{}`, first)
		synctest.Wait()
		refused := httptest.NewRecorder()
		ask(s, http.MethodPost, `{}`, refused)
		require.Equal(t, http.StatusTooManyRequests, refused.Code)
		require.Contains(t, refused.Body.String(), "1 requests to other hosts")
		require.True(t, free(t, s.budgets.reaching, 1), "another tenant")
		require.True(t, free(t, s.budgets.computing, 1))
		close(enter)
		synctest.Wait()
		require.Equal(t, http.StatusOK, first.Code)
		require.Zero(t, s.budgets.reaching.Owners())
	})
}

// A part of an operation computes with a share, and an answer that is not held back has a share
// until the request ends.
func TestPartsOfAnOperationTakeShares(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := shareServer(Operation{Method: http.MethodGet}, 1, func() {})
		s.budgets.computing, s.budgets.sending = newBudget(1, 1, "computations"), newBudget(largeAnswer, largeAnswer, "bytes")
		r := &Request{}
		ctx := context.WithValue(t.Context(), requestCtxKey{}, r)
		computed := 0
		for range 2 {
			require.NoError(t, s.Compute(ctx, func() {
				computed++
				require.False(t, free(t, s.budgets.computing, 1))
			}))
			require.True(t, free(t, s.budgets.computing, 1))
		}
		require.Equal(t, 2, computed)

		require.NoError(t, s.HoldAnswer(ctx))
		require.NoError(t, s.HoldAnswer(ctx), "it is taken once")
		require.False(t, free(t, s.budgets.sending, 1))
		r.answerIsRead()
		require.True(t, free(t, s.budgets.sending, 1))

		done, err := s.budgets.computing.take(t.Context(), owner{tenant: 2}, 1)
		require.NoError(t, err)
		require.Equal(t, domain.CodeUnavailable, domain.CodeOf(s.Compute(ctx, func() { computed++ })))
		require.Equal(t, 2, computed, "it waits in vain")
		done()
	})
}
