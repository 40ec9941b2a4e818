package executor

import (
	"cmp"
	"context"
	"log/slog"
	"time"
)

// Logger returns a logger that writes to the log of the run that ctx belongs
// to, which people read in the web UI while it grows. Outside of a handler it
// returns slog.Default().
//
// The lines go to the run's log only, with the time, the level, the attributes
// and the trace id (Config.TraceID). What a handler prints to its standard
// output is not captured. Attributes that are called password, token, api_key
// and the like are written as "[redacted]". To have the lines in the application's own
// log as well, install LogHandler and use slog.InfoContext and its kin.
func Logger(ctx context.Context) *slog.Logger {
	r := runFrom(ctx)
	if r == nil {
		return slog.Default()
	}
	return slog.New(&logHandler{run: r, trace: r.traceIn(ctx), next: slog.DiscardHandler})
}

// LogHandler returns a handler that passes everything on to next and also
// writes records whose context belongs to a handler's run to that run's log:
//
//	slog.SetDefault(slog.New(executor.LogHandler(slog.NewTextHandler(os.Stderr, nil))))
//
// Then slog.InfoContext(ctx, …) anywhere below a handler appears in both. The
// level for runs is Config.LogLevel, or the handler's LogLevel; next keeps its
// own. A nil next discards.
func LogHandler(next slog.Handler) slog.Handler {
	if next == nil {
		next = slog.DiscardHandler
	}
	return &logHandler{next: next}
}

// logHandler implements slog.Handler. It is immutable.
type logHandler struct {
	run   *run   // fixed by Logger; nil = the one of each record's context
	trace string // of the context that Logger was given
	next  slog.Handler
	scope []scope // what WithAttrs and WithGroup added, in their order
}

// scope is either a group that was opened or attributes that were added.
type scope struct {
	group string
	attrs []slog.Attr
}

func (h *logHandler) runOf(ctx context.Context) *run {
	if h.run != nil {
		return h.run
	}
	return runFrom(ctx)
}

// Enabled implements slog.Handler.
func (h *logHandler) Enabled(ctx context.Context, level slog.Level) bool {
	r := h.runOf(ctx)
	return r != nil && level >= r.level.Level() || h.next.Enabled(ctx, level)
}

// Handle implements slog.Handler.
func (h *logHandler) Handle(ctx context.Context, record slog.Record) error {
	if r := h.runOf(ctx); r != nil && record.Level >= r.level.Level() {
		at := record.Time
		if at.IsZero() {
			at = time.Now()
		}
		r.log.Write(at, int(record.Level), record.Message, encodeAttrs(h.scope, record), cmp.Or(r.traceIn(ctx), h.trace, r.trace))
	}
	if !h.next.Enabled(ctx, record.Level) {
		return nil
	}
	return h.next.Handle(ctx, record)
}

// LeaveOut notes in the run's log that lines were left out of it, and why. They
// count as written. It is for handlers that bound what they log: find it by a
// type assertion on the handler of Logger.
func (h *logHandler) LeaveOut(lines int64, why string) {
	if h.run != nil {
		h.run.log.LeaveOut(time.Now(), lines, why)
	}
}

// WithAttrs implements slog.Handler.
func (h *logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	if len(attrs) == 0 {
		return h
	}
	return h.with(scope{attrs: attrs}, h.next.WithAttrs(attrs))
}

// WithGroup implements slog.Handler.
func (h *logHandler) WithGroup(name string) slog.Handler {
	if name == "" {
		return h
	}
	return h.with(scope{group: name}, h.next.WithGroup(name))
}

func (h *logHandler) with(s scope, next slog.Handler) slog.Handler {
	return &logHandler{run: h.run, trace: h.trace, next: next, scope: append(h.scope[:len(h.scope):len(h.scope)], s)}
}
