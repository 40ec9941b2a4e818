package schema_test

import (
	"io/fs"
	"testing"

	"github.com/google/go-cmp/cmp"

	schema "github.com/carillon-sched/carillon/sql"
)

// One version number means one schema, whatever the database.
func TestBothDatabasesHaveTheSameVersions(t *testing.T) {
	mysql, err := fs.Glob(schema.MySQL, "mysql/*.sql")
	if err != nil {
		t.Fatal(err)
	}
	sqlite, err := fs.Glob(schema.SQLite, "sqlite/*.sql")
	if err != nil {
		t.Fatal(err)
	}
	if len(mysql) == 0 {
		t.Fatal("no migrations are embedded")
	}
	trim := func(names []string, prefix string) (out []string) {
		for _, n := range names {
			out = append(out, n[len(prefix):])
		}
		return out
	}
	if diff := cmp.Diff(trim(mysql, "mysql/"), trim(sqlite, "sqlite/")); diff != "" {
		t.Errorf("mysql (-) and sqlite (+) differ:\n%s", diff)
	}
}
