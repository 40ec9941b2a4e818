package web

import (
	"bytes"
	"encoding/base64"
	"encoding/json"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// Page is one page of a list.
type Page[T any] struct {
	Items      []T     `json:"items" doc:"The items of this page, in the order of the list"`
	NextCursor *string `json:"nextCursor" doc:"Give it as cursor to get what follows; null on the last page"`
	Total      *Total  `json:"total,omitempty" doc:"With total=true: how many items all pages have"`
}

// MaxTotal is up to which number lists are counted.
const MaxTotal = 10_000

// Total is how many items a list has.
type Total struct {
	Count int  `json:"count" doc:"Exact up to 10000, unless more is true"`
	More  bool `json:"more" doc:"There are more items than count, or there may be: a filter without an index has looked at the newest rows only"`
}

// TotalParam asks for the total of a list. It is exported because huma passes over embedded
// fields that are not.
type TotalParam struct {
	Total bool `query:"total" doc:"Count the items of all pages, up to 10000"`
}

// PageOutput is the answer that carries one.
type PageOutput[T any] struct{ Body Page[T] }

// OnePage is a list that has no second page.
func OnePage[T any](items []T) *PageOutput[T] {
	return &PageOutput[T]{Body: Page[T]{Items: EmptyIfNil(items)}}
}

// PageParams is what every paged list takes. It is exported because huma passes
// over embedded fields that are not.
type PageParams struct {
	Limit  int    `query:"limit" minimum:"1" maximum:"200" default:"50" doc:"Items of a page, at most"`
	Cursor string `query:"cursor" maxLength:"1024" doc:"nextCursor of the page before"`
}

// ShortPage is PageParams for lists that are short as a rule: users, keys,
// instances. Most clients get them whole.
type ShortPage struct {
	Limit  int    `query:"limit" minimum:"1" maximum:"200" default:"200" doc:"Items of a page, at most"`
	Cursor string `query:"cursor" maxLength:"1024" doc:"nextCursor of the page before"`
}

// PageQuery is the input of lists without filters.
type PageQuery struct{ ShortPage }

// MaxListed bounds what the store is asked for of one object's history, and of what
// uses it.
const MaxListed = 1000

// Cursor is a position in a list, opaque to clients. List keeps a cursor of
// one list (and order) from being used in another one.
type Cursor struct {
	List string `json:"l"`
	Name string `json:"n,omitempty"`
	At   int64  `json:"t,omitempty"` // Unix milliseconds
	ID   int64  `json:"i,omitempty"`
}

// Encode is the cursor as clients get it.
func (c Cursor) Encode() *string {
	raw, err := json.Marshal(c)
	if err != nil {
		return nil // a struct of strings and numbers always marshals
	}
	s := base64.RawURLEncoding.EncodeToString(raw)
	return &s
}

// DecodeCursor reads a cursor of this list; the empty one is the start.
func DecodeCursor(text, list string) (Cursor, error) {
	if text == "" {
		return Cursor{}, nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return Cursor{}, errBadCursor()
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	var c Cursor
	if err := dec.Decode(&c); err != nil || c.List != list || c.ID < 0 || c.ID == 0 && c.Name == "" {
		return Cursor{}, errBadCursor()
	}
	return c, nil
}

func errBadCursor() error {
	return domain.Invalid("query.cursor", "is not a cursor of this list (same filters and order); begin again without it")
}

// SlicePage is a page of a list that the store gives as a whole. The cursor is
// the number of items before it: such lists are short, and who adds to one
// while it is being read may see an item twice.
func SlicePage[T any](all []T, in ShortPage, list string) (*PageOutput[T], error) {
	at, err := DecodeCursor(in.Cursor, list)
	if err != nil {
		return nil, err
	}
	rest := all[min(int(at.ID), len(all)):]
	n := min(len(rest), in.Limit)
	rest, more := rest[:n], n < len(rest)
	out := OnePage(rest)
	if more {
		out.Body.NextCursor = Cursor{List: list, ID: at.ID + int64(len(rest))}.Encode()
	}
	return out, nil
}

// ListPage is SlicePage of all rows that the store has listed, each as of shows it.
func ListPage[R, T any](rows []R, err error, of func(*R) T, in ShortPage, list string) (*PageOutput[T], error) {
	if err != nil {
		return nil, err
	}
	return SlicePage(domain.Collect(rows, of), in, list)
}

// SliceWithin is SlicePage of rows without their large columns. fill reads the columns of a
// page, and returns the number of rows that it has filled. The page ends there.
func SliceWithin[R, T any](all []R, in ShortPage, list string, fill func([]R) (int, error), of func(*R) T) (*PageOutput[T], error) {
	page, err := SlicePage(all, in, list)
	if err != nil {
		return nil, err
	}
	rows := page.Body.Items
	n, err := fill(rows)
	if err != nil {
		return nil, err
	}
	out := OnePage(domain.Collect(rows[:n], of))
	if out.Body.NextCursor = page.Body.NextCursor; n < len(rows) {
		at, err := DecodeCursor(in.Cursor, list)
		if err != nil {
			return nil, err
		}
		out.Body.NextCursor = Cursor{List: list, ID: at.ID + int64(n)}.Encode()
	}
	return out, nil
}

// RowsPage is a page of rows of which the store was asked for one more than limit,
// each as of shows it. What follows begins at the cursor of the last one.
func RowsPage[R, T any](rows []R, err error, limit int, of func(*R) T, cursor func(last *R) Cursor) (*PageOutput[T], error) {
	if err != nil {
		return nil, err
	}
	rows, more := Cut(rows, limit)
	return StoredPage(rows, more, nil, of, cursor)
}

// StoredPage is a page as the store cut it, by the number of its rows or by their bytes.
func StoredPage[R, T any](rows []R, more bool, err error, of func(*R) T, cursor func(last *R) Cursor) (*PageOutput[T], error) {
	if err != nil {
		return nil, err
	}
	out := OnePage(domain.Collect(rows, of))
	if more {
		out.Body.NextCursor = cursor(&rows[len(rows)-1]).Encode()
	}
	return out, nil
}

// AddTotal adds the total to a page if it is asked for.
func AddTotal[T any](in TotalParam, out *PageOutput[T], count func() (n int, more bool, err error)) error {
	if !in.Total {
		return nil
	}
	n, more, err := count()
	out.Body.Total = &Total{Count: n, More: more}
	return err
}

// Cut separates the extra row that a list asks for to know whether there is a
// next page.
func Cut[T any](rows []T, limit int) (page []T, more bool) {
	if len(rows) > limit {
		return rows[:limit], true
	}
	return rows, false
}
