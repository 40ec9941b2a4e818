package lab

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/carillon-sched/carillon/internal/apiclient"
)

// API speaks to one admin node as any client would. It is safe for concurrent
// use once Token is set.
type API struct {
	*apiclient.Client
	Base  string // http://host:port
	Token string // API key or access token

	metrics string // where the node tells its metrics, if not at Base
	http    *http.Client
}

// callLimit bounds one request; long polls are shorter.
const callLimit = 60 * time.Second

// NewAPI returns a client of its own connections for the node at base.
func NewAPI(base string) *API {
	return newAPI(base, "", &http.Client{
		Timeout:       callLimit,
		Transport:     &http.Transport{MaxIdleConnsPerHost: 32, IdleConnTimeout: 10 * time.Second},
		CheckRedirect: apiclient.KeepRedirects,
	})
}

// As returns a client for the same node with another identity.
func (a *API) As(token string) *API {
	other := newAPI(a.Base, token, a.http)
	other.metrics = a.metrics
	return other
}

func newAPI(base, token string, connections *http.Client) *API {
	a := &API{Base: base, Token: token, http: connections}
	var err error
	if a.Client, err = apiclient.New(base, a); err != nil {
		panic(err) // addresses are made here, not read
	}
	return a
}

// Do sends a request with the client's identity.
func (a *API) Do(request *http.Request) (*http.Response, error) {
	if a.Token != "" {
		request.Header.Set("Authorization", "Bearer "+a.Token)
	}
	return a.http.Do(request)
}

// get reads what is not of the API's document.
func (a *API) get(ctx context.Context, path string) (http.Header, []byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, a.Base+path, http.NoBody)
	if err != nil {
		return nil, nil, err
	}
	response, err := a.Do(request)
	if err != nil {
		return nil, nil, err
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode >= 300 {
		err = fmt.Errorf("%s: %s: %s", path, response.Status, raw)
	}
	return response.Header, raw, err
}

// Ready waits until the node serves, a minute at most.
func (a *API) Ready(ctx context.Context) error {
	return Until(ctx, time.Minute, a.Base+" ready", func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		_, _, err := a.get(ctx, "/readyz")
		return err
	})
}

// SignIn signs in with a password and makes an API key of the role "admin",
// which does not expire during a run; the client has it afterwards. The tenant
// may have as many jobs, fires and calls as it likes: quotas are not what is
// measured.
func (a *API) SignIn(ctx context.Context, user, password, tenant string) error {
	session, err := a.Login(ctx, apiclient.LoginInputBody{Username: user, Password: password, Tenant: tenant})
	if err != nil {
		return err
	}
	a.Token = session.Value.AccessToken
	_, err = a.SetTenantQuotas(ctx, session.Value.Tenant.ID, apiclient.SetQuotasInputBody{
		Items: []apiclient.QuotaWrite{{Kind: "jobs"}, {Kind: "fires_per_minute"}, {Kind: "api_calls_per_second"}},
	})
	if p, ok := errors.AsType[*apiclient.Problem](err); err != nil && (!ok || p.Status != http.StatusNotFound) { // 404: a version that has none
		return err
	}
	key, err := a.CreateAPIKey(ctx, apiclient.CreateAPIKeyInputBody{Name: "lab", Role: "admin"})
	if err != nil {
		return err
	}
	a.Token = key.Value.Secret
	return nil
}

// AsOperator returns a client of the user, who is a platform administrator.
func (a *API) AsOperator(ctx context.Context, user, password string) (*API, error) {
	session, err := a.Login(ctx, apiclient.LoginInputBody{Username: user, Password: password})
	if err != nil {
		return nil, err
	}
	return a.As(session.Value.AccessToken), nil
}

// AllowCallbacks allows the nodes to call hosts for the tenant of the user, who is a
// platform administrator.
func (a *API) AllowCallbacks(ctx context.Context, user, password string, p apiclient.CallbackPolicyWrite) error {
	operator, err := a.AsOperator(ctx, user, password)
	if err != nil {
		return err
	}
	_, err = operator.SetScriptPolicy(ctx, apiclient.ScriptPolicyWrite{Callbacks: &p})
	return err
}

// MakeExecutor makes an executor and a join token for it.
func (a *API) MakeExecutor(ctx context.Context, name string) (id, joinToken string, err error) {
	made, err := a.CreateExecutor(ctx, apiclient.CreateExecutorInputBody{Name: name})
	if err != nil {
		return "", "", err
	}
	token, err := a.CreateJoinToken(ctx, made.Value.ID, apiclient.CreateJoinTokenInputBody{Name: "lab"})
	return made.Value.ID, token.Value.Secret, err
}

// MakeJob makes a job and returns its id.
func (a *API) MakeJob(ctx context.Context, job apiclient.JobWrite) (string, error) {
	made, err := a.CreateJob(ctx, apiclient.CreateJobParams{}, job)
	return made.Value.ID, err
}

// RunNow asks for a run of a job and returns its id.
func (a *API) RunNow(ctx context.Context, job string) (string, error) {
	run, err := a.RunJob(ctx, job, apiclient.RunJobParams{}, apiclient.RunRequest{})
	return run.Value.ID, err
}

// Online waits until exactly n instances of the executor are there, for limit
// at most.
func (a *API) Online(ctx context.Context, executorID string, n int, limit time.Duration) error {
	return Until(ctx, limit, fmt.Sprintf("%d instances online", n), func(ctx context.Context) error {
		e, err := a.GetExecutor(ctx, executorID)
		if err == nil && e.Value.InstancesOnline != int64(n) {
			err = fmt.Errorf("%d are", e.Value.InstancesOnline)
		}
		return err
	})
}

// Metrics reads the node's metrics by name; those with labels are summed.
func (a *API) Metrics(ctx context.Context) (map[string]float64, error) {
	out := map[string]float64{}
	return out, a.eachMetric(ctx, func(name, _ string, value float64) { out[name] += value })
}

// MetricBy reads one metric by the value of one of its labels.
func (a *API) MetricBy(ctx context.Context, metric, label string) (map[string]float64, error) {
	out := map[string]float64{}
	return out, a.eachMetric(ctx, func(name, labels string, value float64) {
		_, rest, ok := strings.Cut(labels, label+`="`)
		if of, _, end := strings.Cut(rest, `"`); ok && end && name == metric {
			out[of] += value
		}
	})
}

// eachMetric calls seen for each series, with what stands between its braces.
func (a *API) eachMetric(ctx context.Context, seen func(name, labels string, value float64)) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	of := *a
	of.Base = cmp.Or(a.metrics, a.Base)
	_, raw, err := of.get(ctx, "/metrics")
	if err != nil {
		return err
	}
	lines := bufio.NewScanner(bytes.NewReader(raw))
	for lines.Scan() {
		labels := ""
		name, rest, ok := strings.Cut(lines.Text(), " ")
		if at := strings.LastIndexByte(lines.Text(), '}'); at > 0 {
			name, labels, _ = strings.Cut(lines.Text()[:at], "{")
			rest, ok = strings.TrimSpace(lines.Text()[at+1:]), true
		}
		value, err := strconv.ParseFloat(strings.TrimSpace(rest), 64)
		if !ok || err != nil || strings.HasPrefix(name, "#") {
			continue
		}
		seen(name, labels, value)
	}
	return lines.Err()
}

// Date returns the node's own clock as its answers tell it, to the second.
func (a *API) Date(ctx context.Context) (time.Time, error) {
	header, _, err := a.get(ctx, "/healthz")
	if header == nil {
		return time.Time{}, err
	}
	return http.ParseTime(header.Get("Date"))
}

// Until tries every 50 ms until try succeeds, for limit at most; the error
// then says what was waited for, and the last failure.
func Until(ctx context.Context, limit time.Duration, what string, try func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		err := try(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: not within %s: %w", what, limit, err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// JSON writes a value that a job takes as its input.
func JSON(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err) // inputs are structs and maps of plain values
	}
	return raw
}
