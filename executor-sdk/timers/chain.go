package timers

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/carillon-sched/carillon/executor-sdk/internal/callapi"
)

// row is one of the table.
type row struct {
	// Fixed after construction.
	id       int64
	keys     Keys
	key      string
	action   string
	text     string // the request
	due      int64  // in milliseconds
	attempts int
	created  int64 // in milliseconds

	answer  Answer    // zero: nobody has answered, or nobody was asked
	next    time.Time // when it is due instead; zero with an error: it is set aside
	removed bool      // it was cancelled before it was sent
	moved   string    // the instant that the moves behind it ask for, of a timer that was not sent or of a move
	by      *row      // the move behind it that is sent in its place
}

// name names the row for the admin, which sets no second timer for it. A process may die
// between the sending and the deletion of a row, and the timer may be cancelled meanwhile. A
// table that was made anew has the same ids, but not at the same time.
func (r *row) name() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %d %s", r.id, r.created, r.text))
	return "outbox-" + hex.EncodeToString(sum[:16])
}

// chainName is what rows have in common that are sent in their order.
type chainName struct {
	keys Keys
	key  string
}

// gone reports whether nothing waits for it any more: it was taken, or set aside.
func (r *row) gone() bool { return r.answer.Outcome != "" || r.answer.Err != nil && r.next.IsZero() }

// chain is the rows of one key, in their order. All are locked. Those that ask
// for the same are sent together, and what follows when they are gone; what follows a
// cancellation, when that is deleted: sent again, it would end what came of the rest.
type chain struct {
	rows    []*row
	aside   []int64 // rows that were set aside
	foreign int64   // the first row that others have; what is behind it waits; 0 = none
	moves   bool    // others have moves of it
	// lastMove is the last of the moves that follow the rows without another action in
	// between, and were not taken because there are too many. last is its instant.
	lastMove int64
	last     string
	ended    bool // another action follows

	open   []*row    // to be sent still
	end    *row      // the cancellation that open begins with
	over   []*row    // of no use when that is done
	folded int       // how many moves the timers before them begin with
	until  time.Time // when to go on; zero: nothing keeps it up
	more   bool      // what is left can be sent at once
}

// begin finds out what has to be sent.
func (c *chain) begin() {
	slices.SortFunc(c.rows, func(a, b *row) int { return cmp.Compare(a.id, b.id) })
	for i, r := range c.rows {
		switch {
		case c.foreign != 0 && r.id > c.foreign:
		case r.action == cancelAction:
			c.open, c.end, c.over = []*row{r}, r, c.rows[:i]
		default:
			c.open = append(c.open, r)
		}
	}
	c.fold()
}

// goesOn hears of the rows that follow those that are taken, in their order.
func (c *chain) goesOn(id int64, action string) {
	switch {
	case c.ended:
	case action == rescheduleAction:
		c.lastMove = id
	case action != setAction || c.lastMove != 0:
		c.ended = true
	}
}

// movedTo is the instant that a move asks for. It is empty for a damaged move.
func movedTo(text string) string {
	var body callapi.RescheduleTimerInputBody
	if json.Unmarshal([]byte(text), &body) != nil {
		return ""
	}
	return body.At
}

// fold lets timers that were not sent begin with the instant to which they were moved: sent
// late, they would run at the first one before they could be moved. Those whose moves others
// have wait for these.
func (c *chain) fold() {
	sets := c.segment()
	if len(sets) == 0 || sets[0].action != setAction {
		return
	}
	if c.moves {
		c.open = nil
		return
	}
	for _, r := range c.open[len(sets):] {
		at := movedTo(r.text)
		if r.action != rescheduleAction || at == "" {
			return
		}
		c.folded++
		move(sets, at)
	}
	move(sets, c.last)
}

// move lets timers that are not sent yet begin with another instant, if it is known.
func move(sets []*row, at string) {
	for _, set := range sets {
		if at != "" {
			set.moved = at
		}
	}
}

// lastOnly lets the last of several moves stand for those before it. Their instants may
// have passed, and the timer would run before it could be moved again. A damaged move
// is sent as it is.
func (c *chain) lastOnly(moves []*row) (send []*row) {
	var last *row
	for _, r := range slices.Backward(moves) {
		switch {
		case movedTo(r.text) == "":
			send = append(send, r)
		case last == nil:
			last, send = r, append(send, r)
		default:
			r.by = last
		}
	}
	if last != nil && last == c.open[len(c.open)-1] {
		last.moved = c.last
	}
	slices.Reverse(send)
	return send
}

// segment is what open begins with that asks for the same.
func (c *chain) segment() []*row {
	n := 0
	for n < len(c.open) && c.open[n].action == c.open[0].action {
		n++
	}
	return c.open[:n]
}

// next is what can be sent now.
func (c *chain) next(now time.Time) (rows []*row) {
	for _, r := range c.segment() {
		if r.due <= now.UnixMilli() {
			rows = append(rows, r)
		}
	}
	if len(rows) > 0 && rows[0].action == rescheduleAction {
		return c.lastOnly(rows)
	}
	return rows
}

// advance goes on behind what was sent, if that is gone.
func (c *chain) advance() {
	sent := c.segment()
	created := false
	for _, r := range sent {
		if r.by != nil {
			r.answer, r.next = r.by.answer, r.by.next
		}
		at := r.next
		if at.IsZero() {
			at = time.UnixMilli(r.due)
		}
		if !r.gone() && at.After(c.until) {
			c.until = at
		}
		if r == c.end && r.answer.Outcome != "" {
			for _, old := range c.over {
				old.removed = true
			}
		}
		created = created || r.moved != "" && r.answer.Outcome == Created
	}
	c.open = c.open[len(sent):]
	if created {
		for _, r := range c.open[:c.folded] {
			r.answer = Answer{Key: r.key, Outcome: moved}
		}
		c.open = c.open[c.folded:]
	}
	if c.until.IsZero() && len(sent) > 0 && sent[0] == c.end {
		c.open, c.more = nil, len(c.open) > 0
	}
	if !c.until.IsZero() {
		c.open = nil
	}
}

// close says when the rows are due again that were not asked for.
func (c *chain) close(now time.Time) {
	until := c.until
	switch {
	case c.more:
		return
	case until.IsZero():
		until = now.Add(held)
	}
	for _, r := range c.rows {
		if !r.removed && r.answer.Outcome == "" && r.answer.Err == nil && r.due < until.UnixMilli() {
			r.next = until
		}
	}
}

// send asks for what the chains have to be asked for, a segment of each at a time.
// With an error, nobody has answered for those that have no answer.
func (o *Outbox) send(ctx context.Context, chains []*chain, now time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, sendTime)
	defer cancel()
	for _, c := range chains {
		c.begin()
	}
	for {
		var wave []*row
		for _, c := range chains {
			wave = append(wave, c.next(now)...)
		}
		if err := o.sendRows(ctx, wave); err != nil {
			return err
		}
		for _, c := range chains {
			c.advance()
		}
		if len(wave) == 0 {
			break
		}
	}
	for _, c := range chains {
		c.close(now)
	}
	return nil
}

// sendRows sends what asks for the same of a handler at a time: what is wrong with one
// handler, or with the rights to it, is nothing to others.
func (o *Outbox) sendRows(ctx context.Context, rows []*row) error {
	type group struct {
		keys   Keys
		action string
	}
	var groups []group
	of := map[group][]*row{}
	for _, r := range rows {
		g := group{r.keys, r.action}
		if of[g] == nil {
			groups = append(groups, g)
		}
		of[g] = append(of[g], r)
	}
	for _, g := range groups {
		send := map[string]func(context.Context, Keys, []*row) (int, error){setAction: sendSets, cancelAction: sendCancels, rescheduleAction: sendMove}[g.action]
		if send == nil {
			send = sendUnknown
		}
		for list := of[g]; len(list) > 0; {
			n, err := sendSome(ctx, g.keys, list, send)
			if err != nil {
				return err
			}
			for _, r := range list[:n] {
				o.settle(ctx, r)
			}
			list = list[n:]
		}
	}
	return nil
}

// sendSome sends rows of one handler, from the first on, and returns how many. The error
// is that nobody has answered.
func sendSome(ctx context.Context, keys Keys, rows []*row, send func(context.Context, Keys, []*row) (int, error)) (int, error) {
	n, err := send(ctx, keys, rows)
	if err != nil {
		for _, r := range rows[:n] {
			r.answer = Answer{}
		}
		return 0, err
	}
	var refused *RefusedError
	if n > 1 && errors.As(rows[0].answer.Err, &refused) && refused.Status != 0 && !rows[0].mayChange() {
		for _, r := range rows[:n] {
			r.answer = Answer{}
		}
		return sendSome(ctx, keys, rows[:n/2], send) // the one that is wrong is found by halves
	}
	return n, nil
}

func sendSets(ctx context.Context, keys Keys, rows []*row) (int, error) {
	var requests []*request
	for _, r := range rows {
		one := &request{}
		if err := json.Unmarshal([]byte(r.text), &one.TimerRequest); err != nil {
			if len(requests) > 0 {
				break
			}
			r.answer.Err = malformed(r, err)
			return 1, nil
		}
		if r.moved != "" {
			one.At = r.moved
		}
		one.RequestID = r.name()
		requests = append(requests, one)
	}
	answers := make([]Answer, len(requests))
	n, err := keys.batch(ctx, requests, answers)
	for i := range n {
		rows[i].answer = answers[i]
	}
	return n, err
}

func sendCancels(ctx context.Context, keys Keys, rows []*row) (int, error) {
	answers := make([]Answer, len(rows))
	for i, r := range rows {
		answers[i].Key = r.key
	}
	n, err := keys.cancelBatch(ctx, answers, true)
	for i := range n {
		rows[i].answer = answers[i]
	}
	return n, err
}

func sendMove(ctx context.Context, keys Keys, rows []*row) (int, error) {
	r := rows[0]
	var body callapi.RescheduleTimerInputBody
	if err := json.Unmarshal([]byte(r.text), &body); err != nil {
		r.answer.Err = malformed(r, err)
		return 1, nil
	}
	if r.moved != "" {
		body.At = r.moved
	}
	// Repeated at any time: if the first one was heard, the answer says at worst that the
	// run has begun.
	_, err := keys.ask(ctx, r.key, keys.path(r.key)+"/reschedule", body, time.Time{})
	if gone := (&UnconfirmedError{}); errors.As(err, &gone) {
		return 1, err
	}
	r.answer = Answer{Key: r.key, Err: err}
	if err == nil {
		r.answer.Outcome = moved
	}
	return 1, nil
}

func sendUnknown(_ context.Context, _ Keys, rows []*row) (int, error) {
	rows[0].answer.Err = malformed(rows[0], errors.New("the action is not known to this version"))
	return 1, nil
}

func malformed(r *row, err error) error {
	return &RefusedError{Handler: r.keys.name(), Key: r.key, Code: string(callapi.ProblemCodeMalformedJSON), Detail: err.Error()}
}

// settle makes of the answer what becomes of the row.
func (o *Outbox) settle(ctx context.Context, r *row) {
	err := r.answer.Err
	var refused *RefusedError
	byItem := errors.As(err, &refused) && refused.Status == 0 // and not that the handler is not there, or not for this key
	switch {
	case err == nil:
		if r.answer.ended {
			o.config.Logger.WarnContext(ctx, "a timer was not set: the one of its key has ended, and its key is not free yet; cancel that in the same transaction to set one anew", "handler", r.keys.name(), "key", r.key)
		}
	case r.action == cancelAction && byItem && (errors.Is(err, ErrNotFound) || errors.Is(err, ErrEnded)):
		r.answer = Answer{Key: r.key, Outcome: Cancelled}
	case r.action == rescheduleAction && (errors.Is(err, ErrStarted) || errors.Is(err, ErrEnded)):
		o.config.Logger.InfoContext(ctx, "a timer was not moved, because its run has begun", "handler", r.keys.name(), "key", r.key, "err", err)
		r.answer = Answer{Key: r.key, Outcome: moved}
	case r.mayChange():
		r.next = time.Now().Add(min(retryFirst<<min(max(r.attempts, 0), 20), retryMost))
	}
}

// mayChange reports whether the same may be taken later that was refused.
func (r *row) mayChange() bool {
	var refused *RefusedError
	if !errors.As(r.answer.Err, &refused) {
		return true // the admin does not know whether it has done it
	}
	switch callapi.ProblemCode(refused.Code) {
	case callapi.ProblemCodeValidationFailed, callapi.ProblemCodeUnfitInput, callapi.ProblemCodeMalformedJSON, callapi.ProblemCodeBodyTooLarge:
		return false
	case callapi.ProblemCodeNotFound:
		return r.action != rescheduleAction
	default:
		return true
	}
}
