package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"
)

// api speaks to an admin as any client would.
type api struct {
	base  string
	token string
}

func (a *api) call(ctx context.Context, method, path string, in, out any) error {
	var body io.Reader
	if in != nil {
		raw, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(raw)
	}
	req, err := http.NewRequestWithContext(ctx, method, a.base+path, body)
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	if a.token != "" {
		req.Header.Set("Authorization", "Bearer "+a.token)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	if res.StatusCode >= 300 {
		return fmt.Errorf("%s %s: %s: %s", method, path, res.Status, raw)
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(raw, out)
}

// ready waits until the node serves.
func (a *api) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		err := a.call(ctx, http.MethodGet, "/readyz", nil, nil)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s did not become ready: %w", a.base, err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// setUp signs in, makes an API key that does not expire during the run, the
// executor and its join token.
func (a *api) setUp(ctx context.Context, password, executor string) (executorID, joinToken string, err error) {
	var session struct{ AccessToken string }
	if err := a.call(ctx, http.MethodPost, "/api/v1/auth/login", map[string]string{"username": "admin", "password": password}, &session); err != nil {
		return "", "", err
	}
	a.token = session.AccessToken
	var key struct{ Secret string }
	if err := a.call(ctx, http.MethodPost, "/api/v1/api-keys", map[string]string{"name": "proof", "role": "admin"}, &key); err != nil {
		return "", "", err
	}
	a.token = key.Secret
	var made struct{ ID string }
	if err := a.call(ctx, http.MethodPost, "/api/v1/executors", map[string]string{"name": executor}, &made); err != nil {
		return "", "", err
	}
	var token struct{ Secret string }
	err = a.call(ctx, http.MethodPost, "/api/v1/executors/"+made.ID+"/join-tokens", map[string]string{"name": "proof"}, &token)
	return made.ID, token.Secret, err
}

// online waits until n instances are there.
func (a *api) online(ctx context.Context, executorID string, n int) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		var e struct{ InstancesOnline int }
		err := a.call(ctx, http.MethodGet, "/api/v1/executors/"+executorID, nil, &e)
		if err == nil && e.InstancesOnline >= n {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d of %d instances online: %w", e.InstancesOnline, n, err)
		case <-time.After(200 * time.Millisecond):
		}
	}
}
