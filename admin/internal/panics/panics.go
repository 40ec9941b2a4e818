// Package panics answers: what does a panic cost? The work that panicked, and
// nobody else's (promise P15).
package panics

import (
	"errors"
	"fmt"
	"runtime/debug"
)

// Panic is a panic as an error.
type Panic struct {
	Value any
	Stack []byte // where it happened, as debug.Stack writes it
}

// Error says what panicked in one line; the stack is for the log.
func (p *Panic) Error() string { return fmt.Sprintf("panic: %v", p.Value) }

// Unwrap returns the panic's value where that is an error.
func (p *Panic) Unwrap() error {
	err, _ := p.Value.(error)
	return err
}

// Stack returns where err panicked, or "" where it did not.
func Stack(err error) string {
	var p *Panic
	if errors.As(err, &p) {
		return string(p.Stack)
	}
	return ""
}

// Unwinding is a value that somebody panics with to leave a goroutine on purpose;
// it passes.
type Unwinding interface{ Unwinds() }

// Catch returns what f returns, or a *Panic when f panics. It is safe for
// concurrent use.
func Catch(f func() error) (err error) {
	defer func() {
		v := recover()
		if _, on := v.(Unwinding); on {
			panic(v)
		}
		if v != nil {
			err = &Panic{Value: v, Stack: debug.Stack()}
		}
	}()
	return f()
}
