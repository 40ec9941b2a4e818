package admin

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDatabase(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ database, password, driver, dsn, wrong string }{
		{"sqlite:/d/x.db", "", "sqlite", "/d/x.db", ""},
		{"mysql://u:p@db:3307/c?tls=true", "", "mysql", "u:p@tcp(db:3307)/c?tls=true", ""},
		{"mysql://u:p@/@db/c", "", "mysql", "u:p@/@tcp(db:3306)/c", ""},
		{"mysql://u@db/c", "p:@/x", "mysql", "u:p:@/x@tcp(db:3306)/c", ""},
		{"mysql:u:p@unix(/s)/c", "", "mysql", "u:p@unix(/s)/c", ""},
		{"mysql://u:p@db/c", "p", "", "", "the database has to name a user and no password"},
		{"mysql://db/c", "p", "", "", "the database has to name a user and no password"},
		{"mysql:u@unix(/s)/c", "p", "", "", "leave it out"},
		{"sqlite:/d/x.db", "p", "", "", "leave it out"},
		{"mysql://u@db", "", "", "", "expected mysql://user:password@host:port/name"},
		{"postgres://u@db/c", "", "", "", "must begin with sqlite: or mysql://"},
	} {
		driver, dsn, err := Config{Database: test.database, DatabasePassword: test.password}.database()
		if test.wrong != "" {
			require.ErrorContains(t, err, test.wrong, test.database)
			continue
		}
		require.NoError(t, err, test.database)
		require.Equal(t, [2]string{test.driver, test.dsn}, [2]string{driver, dsn}, test.database)
	}
}
