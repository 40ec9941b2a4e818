package schema_test

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"
	"testing"

	schema "github.com/carillon-sched/carillon/sql"
)

// previousLast is the last migration of the version before this one. Its nodes go
// on working while the first node of this version migrates the schema, and after
// it; row F05 of the fault matrix runs both. Before the first release it is the
// whole schema, which the first release begins with.
const previousLast = 1

// Nodes of two versions share a schema during an upgrade, so a migration only
// adds, and what it adds to a table does without being named in an INSERT.
// What it makes superfluous is dropped by the version after. SQLite has one
// node: there is nothing to share.
func TestMigrationsLeaveWhatThePreviousVersionUses(t *testing.T) {
	files, err := fs.Glob(schema.MySQL, "mysql/*.sql")
	if err != nil {
		t.Fatal(err)
	}
	known := false
	for _, name := range files {
		var number int
		if _, err := fmt.Sscanf(path.Base(name), "%05d_", &number); err != nil {
			t.Fatal(err)
		}
		known = known || number == previousLast
		if number <= previousLast {
			continue
		}
		text, err := fs.ReadFile(schema.MySQL, name)
		if err != nil {
			t.Fatal(err)
		}
		for _, complaint := range breaks(string(text)) {
			t.Errorf("%s: %s", name, complaint)
		}
	}
	if !known {
		t.Fatalf("there is no migration %05d", previousLast)
	}
}

var (
	comments = regexp.MustCompile(`(?m)--.*$`)
	clauses  = regexp.MustCompile(`,\s*(?:ADD|DROP|MODIFY|CHANGE|RENAME|ALTER)\b`)
	removes  = regexp.MustCompile(`(?i)^\s*(DROP|RENAME|TRUNCATE)\b|\b(DROP|MODIFY|CHANGE|RENAME)\s+(COLUMN|TABLE|TO|INDEX|KEY|PRIMARY)?\b`)
	required = regexp.MustCompile(`(?i)\bADD\s+COLUMN\b.*\bNOT\s+NULL\b`)
	filled   = regexp.MustCompile(`(?i)\b(DEFAULT|GENERATED)\b`)
	unique   = regexp.MustCompile(`(?i)\bADD\s+(UNIQUE|CONSTRAINT|FOREIGN|CHECK)\b`)
)

// wider are changes that make room for more in a column.
var wider = map[string]bool{"ALTER TABLE api_keys MODIFY COLUMN role VARCHAR(64) NOT NULL": true}

// breaks lists what the upward part of a migration does to nodes that do not
// know of it.
func breaks(text string) (complaints []string) {
	up, _, _ := strings.Cut(text, "-- +goose Down")
	for statement := range strings.SplitSeq(comments.ReplaceAllString(up, ""), ";") {
		statement = strings.Join(strings.Fields(statement), " ")
		if strings.HasPrefix(strings.ToUpper(statement), "CREATE TABLE") {
			continue
		}
		if removes.MatchString(statement) && !wider[statement] {
			complaints = append(complaints, "takes away: "+statement)
		}
		if !strings.HasPrefix(strings.ToUpper(statement), "ALTER TABLE") {
			continue
		}
		for _, clause := range split(statement) {
			if required.MatchString(clause) && !filled.MatchString(clause) {
				complaints = append(complaints, "has no default: "+clause)
			}
			if unique.MatchString(clause) {
				complaints = append(complaints, "forbids what was allowed: "+clause)
			}
		}
	}
	return complaints
}

// split cuts an ALTER TABLE into its clauses; commas inside of brackets are none.
func split(statement string) (out []string) {
	from := 0
	for _, at := range clauses.FindAllStringIndex(statement, -1) {
		out = append(out, statement[from:at[0]])
		from = at[0] + 1
	}
	return append(out, statement[from:])
}

func TestBreaksFindsThem(t *testing.T) {
	for statement, want := range map[string]int{
		"CREATE TABLE t (a INT NOT NULL, UNIQUE KEY u (a));":                                 0,
		"ALTER TABLE t ADD COLUMN a INT NOT NULL DEFAULT 0, ADD KEY k (a, b);":               0,
		"ALTER TABLE t ADD COLUMN a TEXT NULL, ADD COLUMN b INT NOT NULL;":                   1,
		"ALTER TABLE t\n ADD COLUMN b INT NOT NULL, -- why\n ADD COLUMN c INT DEFAULT 0;":    1,
		"ALTER TABLE t DROP COLUMN a;":                                                       1,
		"ALTER TABLE t MODIFY a BIGINT NOT NULL;":                                            1,
		"ALTER TABLE t RENAME TO u;":                                                         1,
		"ALTER TABLE t ADD UNIQUE KEY u (a);":                                                1,
		"DROP TABLE t;":                                                                      1,
		"UPDATE t SET a = 1;":                                                                0,
		"ALTER TABLE t ADD COLUMN a INT NULL;\n-- +goose Down\nALTER TABLE t DROP COLUMN a;": 0,
	} {
		if got := breaks(statement); len(got) != want {
			t.Errorf("%s: %q", statement, got)
		}
	}
}
