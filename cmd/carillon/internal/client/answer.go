package client

import (
	"bytes"
	"encoding/json"
	"net/url"
	"strconv"
)

// Doc is an answer twice: read into T, and as the server wrote it.
type Doc[T any] struct {
	Value T
	Raw   json.RawMessage
}

// UnmarshalJSON keeps both forms.
func (d *Doc[T]) UnmarshalJSON(raw []byte) error {
	d.Raw = bytes.Clone(raw)
	return json.Unmarshal(raw, &d.Value)
}

// MarshalJSON gives the server's bytes.
func (d Doc[T]) MarshalJSON() ([]byte, error) {
	if d.Raw == nil {
		return json.Marshal(d.Value)
	}
	return d.Raw, nil
}

// Page is one page of a list.
type Page[T any] struct {
	Items      []Doc[T] `json:"items"`
	NextCursor *string  `json:"nextCursor"`
}

// maxLimit is the largest page that the server gives.
const maxLimit = 200

// all follows a list's pages until limit items are there; limit 0 = all.
func all[T any](limit int, query url.Values, page func(url.Values) (Page[T], error)) ([]Doc[T], error) {
	items := []Doc[T]{}
	for {
		n := maxLimit
		if limit > 0 {
			n = min(n, limit-len(items))
		}
		query.Set("limit", strconv.Itoa(n))
		p, err := page(query)
		if err != nil {
			return nil, err
		}
		items = append(items, p.Items...)
		if p.NextCursor == nil || (limit > 0 && len(items) >= limit) {
			return items, nil
		}
		query.Set("cursor", *p.NextCursor)
	}
}

// set adds a parameter unless it is empty.
func set(q url.Values, name, value string) {
	if value != "" {
		q.Set(name, value)
	}
}
