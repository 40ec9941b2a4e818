package lab

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"
)

// API speaks to an admin as any client would.
type API struct {
	Base  string // http://host:port
	Token string // bearer token; empty before SignIn
}

// Call sends in as JSON and decodes the answer into out; either may be nil.
func (a *API) Call(ctx context.Context, method, path string, in, out any) error {
	raw, err := a.Raw(ctx, method, path, in)
	if err != nil || out == nil {
		return err
	}
	return json.Unmarshal(raw, out)
}

// Raw sends in as JSON and returns the answer's body; an answer of 300 or
// above is an error.
func (a *API) Raw(ctx context.Context, method, path string, in any) ([]byte, error) {
	var body io.Reader
	if in != nil {
		raw, err := json.Marshal(in)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(raw)
	}
	req, err := http.NewRequestWithContext(ctx, method, a.Base+path, body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	if a.Token != "" {
		req.Header.Set("Authorization", "Bearer "+a.Token)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, err
	}
	if res.StatusCode >= 300 {
		return nil, fmt.Errorf("%s %s: %s: %s", method, path, res.Status, raw)
	}
	return raw, nil
}

// Ready waits until the node serves.
func (a *API) Ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		err := a.Call(ctx, http.MethodGet, "/readyz", nil, nil)
		if err == nil {
			return nil
		}
		if !Pause(ctx, 100*time.Millisecond) {
			return fmt.Errorf("%s did not become ready: %w", a.Base, err)
		}
	}
}

// SignIn makes an API key that does not expire while anything here runs.
func (a *API) SignIn(ctx context.Context, password string) error {
	var session struct{ AccessToken string }
	if err := a.Call(ctx, http.MethodPost, "/api/v1/auth/login", map[string]string{"username": "admin", "password": password}, &session); err != nil {
		return err
	}
	a.Token = session.AccessToken
	var key struct{ Secret string }
	if err := a.Call(ctx, http.MethodPost, "/api/v1/api-keys", map[string]string{"name": "lab", "role": "admin"}, &key); err != nil {
		return err
	}
	a.Token = key.Secret
	return nil
}

// CreateExecutor makes an executor and a join token for it.
func (a *API) CreateExecutor(ctx context.Context, name string) (id, joinToken string, err error) {
	var made struct{ ID string }
	if err := a.Call(ctx, http.MethodPost, "/api/v1/executors", map[string]string{"name": name}, &made); err != nil {
		return "", "", err
	}
	var token struct{ Secret string }
	err = a.Call(ctx, http.MethodPost, "/api/v1/executors/"+made.ID+"/join-tokens", map[string]string{"name": "lab"}, &token)
	return made.ID, token.Secret, err
}

// Online waits until n instances of the executor are there.
func (a *API) Online(ctx context.Context, executorID string, n int) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		var e struct{ InstancesOnline int }
		err := a.Call(ctx, http.MethodGet, "/api/v1/executors/"+executorID, nil, &e)
		if err == nil && e.InstancesOnline >= n {
			return nil
		}
		if !Pause(ctx, 200*time.Millisecond) {
			return fmt.Errorf("%d of %d instances online: %w", e.InstancesOnline, n, err)
		}
	}
}

// Pause waits for d, or returns false when ctx ends first.
func Pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// PauseUntil waits for an instant, or returns ctx's error when it ends first.
func PauseUntil(ctx context.Context, t time.Time) error {
	if !Pause(ctx, time.Until(t)) {
		return context.Cause(ctx)
	}
	return nil
}
