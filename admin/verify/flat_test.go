package verify

import (
	"bytes"
	"encoding/json"
	"testing"
)

// FuzzFlat: what the quick way reads, encoding/json reads too, and as the same.
func FuzzFlat(f *testing.F) {
	for _, line := range []string{
		`{"job":"77","key":"9001","fence":1,"boot":"e1-1","tenant":"1","shard":0,"start":1795248000004100,"attempt":1,"fireAt":1795248000000000}`,
		`{"key":"1","tenant":"1","job":"77","revision":1,"cause":"schedule","fireAt":1,"state":"succeeded","fence":-1,"attempt":1,"node":"n1"}`,
		`{"key":"a\"b"}`, `{"key":"é"}`, `{"fence":1.5}`, `{"fence":01}`, `{"fence":9223372036854775808}`, `{"cancelled":true,"failed":false}`,
		`{"cancelled":1}`, `{"key":null}`, `{"key":1}`, `{ "key":"1"}`, `{"nope":1}`, `{"key":"1"} `, `{}`, `{"key":"1",}`, `{"shard":-}`, `{"Key":"1"}`,
	} {
		f.Add([]byte(line))
	}
	keep := func(b []byte) string { return string(b) }
	f.Fuzz(func(t *testing.T, body []byte) {
		quick := newFlatReader()
		if got, ok := quick.readRun(body, keep); ok {
			var want Run
			if err := strict(body, &want); err != nil || want != *got {
				t.Errorf("%s: %+v, want %+v (%v)", body, *got, want, err)
			}
		}
		if got, ok := quick.readRow(body, keep); ok {
			var want Row
			if err := strict(body, &want); err != nil || want != *got {
				t.Errorf("%s: %+v, want %+v (%v)", body, *got, want, err)
			}
		}
	})
}

func strict(body []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	return d.Decode(into)
}

// The shape that Writer writes is read the quick way: else it is of no use.
func TestWrittenLinesAreFlat(t *testing.T) {
	keep := func(b []byte) string { return string(b) }
	run := Run{Job: "7", Key: "9", Fence: 2, Boot: "b", Tenant: "1", Shard: 3, Start: 5, End: 6, Attempt: 1, FireAt: 4, Node: "e1", Cancelled: true, Failed: true, Stopped: true, Snoozed: true}
	body, err := json.Marshal(run)
	if err != nil {
		t.Fatal(err)
	}
	if got, ok := newFlatReader().readRun(body, keep); !ok || *got != run {
		t.Errorf("%s: %+v, %v", body, *got, ok)
	}
	row := Row{
		Key: "9", Tenant: "1", Job: "7", Revision: 2, Cause: "manual", FireAt: 1, Request: "r", State: "failed", Reason: "x", Fence: 3, Attempt: 2,
		PlannedAt: 1, OfferedAt: 2, GrantedAt: 3, StartedAt: 4, FinishedAt: 5, Node: "n1",
	}
	if body, err = json.Marshal(row); err != nil {
		t.Fatal(err)
	}
	if got, ok := newFlatReader().readRow(body, keep); !ok || *got != row {
		t.Errorf("%s: %+v, %v", body, *got, ok)
	}
}
