package gormstore

import (
	"bytes"
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// transactions are the names of functions whose last argument runs in a transaction.
var transactions = []string{
	"Run", "RunRepeatable", "RunBulk", "RunAt", "RunRepeatableAt", "RunChecked", "RunBatch", "TryOnce", "LeaseTx", "RenewTx", "Value", "ValueChecked", "batchValue",
}

// handOut are the files of the functions that hand a value out after the commit.
var handOut = []string{"db/tx.go", "engine/batch_value.go"}

// Comments that allow a line of a transaction function.
const (
	// ofAllTries: the variable tells a repetition what an earlier try did, and no caller sees it.
	ofAllTries = "// of all tries"
	// inItsArgument: the function from outside changes what belongs to the transaction.
	inItsArgument = "// decides in its argument"
)

// A transaction function tells its caller nothing before the commit: it writes to no
// variable outside of it, sends on no channel from outside, and calls no function from
// outside for its effect. It returns a value instead (db.Value).
func TestTransactionsTellNothingBeforeTheirCommit(t *testing.T) {
	var found []string
	look := func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || slices.Contains(handOut, filepath.ToSlash(path)) {
			return err
		}
		src, err := os.ReadFile(path)
		if err == nil {
			found = append(found, tellsEarly(t, path, src)...)
		}
		return err
	}
	for _, folder := range []string{".", "../../addon"} {
		require.NoError(t, filepath.WalkDir(folder, look))
	}
	require.Empty(t, found, "return the value from the function and use db.Value")

	for name, line := range map[string]string{
		"assigns": "n = 1", "assigns among others": "n, m := 1, 2; _ = m", "counts": "n++", "adds": "n += 2", "fills a map": "m[1] = 2",
		"sets a field": "o.n = 1", "sends": "c <- 1", "calls": "f(1)", "deletes": "delete(m, 1)",
		"scans": "row.Scan(&n)", "in a function of its own": "func() { n = 1 }()",
	} {
		t.Run(name, func(t *testing.T) {
			src := "package p\nfunc g(f func(int), c chan int, m map[int]int, o *struct{ n int }) {\n\tvar n int\n\ts.Run(ctx, \"x\", func(t *Tx) error {\n\t\tvar row Row; var err error; _ = err\n\t\t" +
				line + "\n\t\treturn nil\n\t})\n\t_ = n\n}"
			if name == "assigns among others" {
				src = strings.Replace(src, "n, m := 1, 2; _ = m", "n, err = 1, nil", 1)
			}
			require.Len(t, tellsEarly(t, name, []byte(src)), 1, "%s", src)
			require.Empty(t, tellsEarly(t, name, bytes.Replace([]byte(src), []byte("\n\t\treturn nil"), []byte(" "+ofAllTries+"\n\t\treturn nil"), 1)))
		})
	}
}

// tellsEarly names what transaction functions in a file write to outside of them.
func tellsEarly(t *testing.T, path string, src []byte) (found []string) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, path, src, parser.ParseComments)
	require.NoError(t, err)
	allowed := map[int]bool{}
	for _, group := range file.Comments {
		for _, c := range group.List {
			if strings.HasPrefix(c.Text, ofAllTries) || c.Text == inItsArgument {
				allowed[fset.Position(c.Pos()).Line] = true
			}
		}
	}
	ast.Inspect(file, func(node ast.Node) bool {
		call, ok := node.(*ast.CallExpr)
		if !ok || len(call.Args) == 0 || !slices.Contains(transactions, calledName(call)) {
			return true
		}
		fn, ok := call.Args[len(call.Args)-1].(*ast.FuncLit)
		if !ok {
			return true
		}
		ast.Inspect(fn.Body, func(node ast.Node) bool {
			for _, e := range writtenBy(node) {
				if id := outerVariable(fn, e); id != nil && !allowed[fset.Position(node.Pos()).Line] {
					found = append(found, fmt.Sprintf("%s: a transaction function tells %s before its commit", fset.Position(node.Pos()), id.Name))
				}
			}
			return true
		})
		return true
	})
	return found
}

func calledName(call *ast.CallExpr) string {
	switch fn := call.Fun.(type) {
	case *ast.SelectorExpr:
		return fn.Sel.Name
	case *ast.Ident:
		return fn.Name
	case *ast.IndexExpr:
		return calledName(&ast.CallExpr{Fun: fn.X})
	}
	return ""
}

// writtenBy are the expressions that a statement writes to, sends on, or calls for their
// effect. An address that a Scan gets is written to.
func writtenBy(node ast.Node) []ast.Expr {
	switch s := node.(type) {
	case *ast.AssignStmt:
		if s.Tok != token.DEFINE {
			return s.Lhs
		}
	case *ast.IncDecStmt:
		return []ast.Expr{s.X}
	case *ast.SendStmt:
		return []ast.Expr{s.Chan}
	case *ast.RangeStmt:
		if s.Tok == token.ASSIGN {
			return []ast.Expr{s.Key, s.Value}
		}
	case *ast.ExprStmt:
		call, ok := s.X.(*ast.CallExpr)
		if !ok {
			return nil
		}
		switch name, plain := call.Fun.(*ast.Ident); {
		case plain && (name.Name == "delete" || name.Name == "clear" || name.Name == "copy"):
			return call.Args[:1]
		case plain && name.Name != "close":
			return []ast.Expr{name}
		case plain:
			return call.Args
		}
	case *ast.CallExpr:
		if calledName(s) != "Scan" && calledName(s) != "Take" && calledName(s) != "Find" && calledName(s) != "Pluck" {
			return nil
		}
		var out []ast.Expr
		for _, a := range s.Args {
			if address, ok := a.(*ast.UnaryExpr); ok && address.Op == token.AND {
				out = append(out, address.X)
			}
		}
		return out
	}
	return nil
}

// outerVariable is the local variable below an expression, if it was declared outside of
// the function.
func outerVariable(fn *ast.FuncLit, e ast.Expr) *ast.Ident {
	for {
		switch x := e.(type) {
		case *ast.IndexExpr:
			e = x.X
		case *ast.SelectorExpr:
			e = x.X
		case *ast.StarExpr:
			e = x.X
		case *ast.ParenExpr:
			e = x.X
		case *ast.Ident:
			if x.Obj == nil || x.Obj.Kind != ast.Var || x.Obj.Pos() >= fn.Pos() && x.Obj.Pos() < fn.End() {
				return nil
			}
			return x
		default:
			return nil
		}
	}
}

// A caller that overlooks an error must not go on with a value beside it.
func TestErrorsComeWithoutValues(t *testing.T) {
	s := openStore(t, bothDatabases["sqlite"](t))
	require.NoError(t, s.Close())
	failed := callAll(t, s, func(t *testing.T, values []reflect.Value, err error) {
		for _, v := range values {
			require.True(t, saysNothing(v), "%v beside %v", v, err)
		}
	})
	require.Greater(t, failed, 100, "a closed database answered")
}

// A connection that dies before its first statement is a database that is away, for every
// method: callers answer 503 and not 500.
func TestAConnectionThatDiesAtBeginIsUnavailable(t *testing.T) {
	var dead atomic.Bool
	o := bothDatabases["sqlite"](t)
	o.Connector = func(c driver.Connector) driver.Connector {
		return altering{c, func(ctx context.Context, to driver.Connector) (driver.Conn, error) {
			if dead.Load() {
				return nil, driver.ErrBadConn
			}
			return to.Connect(ctx)
		}}
	}
	s := openStore(t, o)
	dead.Store(true)
	for _, pool := range []*sql.DB{s.Write, s.Read, s.Transactions, s.Leases} {
		pool.SetMaxIdleConns(0)
	}
	failed := callAll(t, s, func(t *testing.T, _ []reflect.Value, err error) {
		require.NotEqual(t, domain.CodeInternal, domain.CodeOf(err), "%v", err)
	})
	require.Greater(t, failed, 100, "a dead database answered")
}

// callAll calls each method of a store with values that are not zero, and look with those
// beside an error. It returns how many methods failed.
func callAll(t *testing.T, s *Store, look func(t *testing.T, values []reflect.Value, err error)) (failed int) {
	face := reflect.TypeFor[store.Store]()
	for i := range face.NumMethod() {
		m := face.Method(i)
		if m.Name == "Close" {
			continue
		}
		t.Run(m.Name, func(t *testing.T) {
			fn := reflect.ValueOf(s).MethodByName(m.Name)
			if n := fn.Type().NumOut(); n < 1 || fn.Type().Out(n-1) != reflect.TypeFor[error]() {
				return
			}
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond) // what is repeated ends
			defer cancel()
			args := make([]reflect.Value, fn.Type().NumIn())
			for i := range args {
				args[i] = sample(fn.Type().In(i), 0)
				if fn.Type().In(i) == reflect.TypeFor[context.Context]() {
					args[i] = reflect.ValueOf(ctx)
				}
			}
			call := fn.Call
			if fn.Type().IsVariadic() {
				call = fn.CallSlice
			}
			out := call(args)
			if err, is := out[len(out)-1].Interface().(error); is {
				failed++
				look(t, out[:len(out)-1], err)
			}
		})
	}
	return failed
}

// saysNothing: the value is zero, or empty.
func saysNothing(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Slice, reflect.Map:
		return v.Len() == 0
	case reflect.Struct:
		for i := range v.NumField() {
			if !saysNothing(v.Field(i)) {
				return false
			}
		}
		return true
	}
	return v.IsZero()
}

// sample is a value of a type in which nothing is zero or empty.
func sample(of reflect.Type, depth int) reflect.Value {
	v := reflect.New(of).Elem()
	switch {
	case of == reflect.TypeFor[context.Context]():
		v.Set(reflect.ValueOf(context.Background()))
		return v
	case of == reflect.TypeFor[time.Time]():
		v.Set(reflect.ValueOf(time.UnixMilli(1_000_000)))
		return v
	case depth > 6:
		return v
	}
	switch of.Kind() {
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(1)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(1)
	case reflect.String:
		v.SetString("x")
	case reflect.Slice:
		v.Set(reflect.Append(v, sample(of.Elem(), depth+1)))
	case reflect.Pointer:
		v.Set(reflect.New(of.Elem()))
		v.Elem().Set(sample(of.Elem(), depth+1))
	case reflect.Struct:
		for i := range of.NumField() {
			if of.Field(i).IsExported() {
				v.Field(i).Set(sample(of.Field(i).Type, depth+1))
			}
		}
	case reflect.Func:
		v.Set(reflect.MakeFunc(of, func([]reflect.Value) []reflect.Value {
			out := make([]reflect.Value, of.NumOut())
			for i := range out {
				out[i] = reflect.Zero(of.Out(i))
			}
			return out
		}))
	}
	return v
}
