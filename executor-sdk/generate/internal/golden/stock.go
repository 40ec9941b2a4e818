package golden

import stdctx "context"

// StockKeeper has values as receivers and a renamed import.
//
//carillon:timer
type StockKeeper struct{}

// Count has only an output.
//
//carillon:clock name=count-stock cron="*/5 * * * *" dialect=standard on-failure=Complain
func (StockKeeper) Count(stdctx.Context) (map[string]int, error) {
	return map[string]int{"bell": 64}, nil
}

// Complain is called after a failed count.
func (StockKeeper) Complain(stdctx.Context, error) {}
