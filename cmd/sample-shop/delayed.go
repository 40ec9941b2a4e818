package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/carillon-sched/carillon/cmd/sample-shop/internal/shop"
)

// delayedRuns asks Carillon, through its HTTP API, for one-shot runs.
type delayedRuns struct {
	base, key string

	mu  sync.Mutex
	job string // guarded by mu: id of the job cancel-unpaid, once it is known
}

// cancelUnpaid asks for a run of the job cancel-unpaid for this order, after
// the time to pay. The idempotency key makes it safe to ask again.
func (d *delayedRuns) cancelUnpaid(ctx context.Context, order int64, after time.Duration) error {
	job, err := d.jobID(ctx)
	if err != nil {
		return err
	}
	body := map[string]any{
		"input": shop.CancelUnpaidInput{OrderID: order}, "after": after.String(),
		"note": fmt.Sprintf("order %d", order),
	}
	return d.call(ctx, http.MethodPost, "/api/v1/jobs/"+job+"/run", fmt.Sprintf("cancel-unpaid-%d", order), body, nil)
}

// jobID finds the job that the application declared when it registered.
func (d *delayedRuns) jobID(ctx context.Context) (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.job != "" {
		return d.job, nil
	}
	var list struct {
		Items []struct{ ID, Name string }
	}
	if err := d.call(ctx, http.MethodGet, "/api/v1/jobs?q="+url.QueryEscape("cancel-unpaid"), "", nil, &list); err != nil {
		return "", err
	}
	for _, j := range list.Items {
		if j.Name == "cancel-unpaid" {
			d.job = j.ID
			return d.job, nil
		}
	}
	return "", fmt.Errorf("the job cancel-unpaid is not there yet")
}

func (d *delayedRuns) call(ctx context.Context, method, path, idempotencyKey string, in, out any) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	var body io.Reader
	if in != nil {
		raw, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(raw)
	}
	req, err := http.NewRequestWithContext(ctx, method, d.base+path, body)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+d.key)
	req.Header.Set("Content-Type", "application/json")
	if idempotencyKey != "" {
		req.Header.Set("Idempotency-Key", idempotencyKey)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(res.Body, 1<<20))
	if err != nil {
		return err
	}
	if res.StatusCode >= 300 {
		return fmt.Errorf("carillon: %s: %s", res.Status, raw)
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(raw, out)
}
