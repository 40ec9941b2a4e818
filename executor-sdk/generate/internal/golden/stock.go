package golden

import (
	stdctx "context"
	"time"
)

// StockKeeper has values as receivers and a renamed import.
//
//carillon:timer proxy=./client
type StockKeeper struct{}

// Count has only an output.
//
//carillon:clock name=count-stock cron="*/5 * * * *" dialect=standard on-failure=Complain
func (StockKeeper) Count(stdctx.Context) (map[string]int, error) {
	return map[string]int{"bell": 64}, nil
}

// Complain is called after a failed count.
func (StockKeeper) Complain(stdctx.Context, error) {}

// Shelf names a shelf.
type Shelf struct {
	Name string        `json:"name" required:"true"` // as on the label
	Wait time.Duration `json:"wait"`
}

// List is a list that has a length.
type List[T any] struct {
	Items []T `json:"items"`
	Total int `json:"total"`
}

type (
	// Count is of one thing.
	Count struct {
		Thing Thing `json:"thing"`
		N     int   `json:"n"`
	}
	Thing string // bell, chime, gong
)

// CountShelf has an input and an output, which callers elsewhere get as copies.
//
//carillon:clock name=count-shelf description="Counts one shelf"
func (StockKeeper) CountShelf(_ stdctx.Context, in Shelf) (List[Count], error) {
	return List[Count]{Items: []Count{{Thing: Thing(in.Name), N: 3}}, Total: 1}, nil
}
