package once_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"

	"github.com/carillon-sched/carillon/executor-sdk/once"
)

// table stands for a *sql.Tx on a database with once.Table.
type table map[string]bool

func (t table) ExecContext(_ context.Context, query string, _ ...any) (sql.Result, error) {
	if t[query] {
		return driver.RowsAffected(0), nil
	}
	t[query] = true
	return driver.RowsAffected(1), nil
}

// The second attempt finds the key that the first one has committed.
func ExampleDo() {
	tx := table{}
	for attempt := range 2 {
		called, err := once.Do(context.Background(), tx, "17/book", func() error {
			fmt.Println("the account is charged")
			return nil
		})
		fmt.Println(attempt+1, called, err)
	}
	// Output:
	// the account is charged
	// 1 true <nil>
	// 2 false <nil>
}
