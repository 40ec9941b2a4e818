// Package explain answers: why did this run start when it did, or not at all?
//
// It reads what the rows keep (the stamps of a run, what delayed it, its
// attempts, the instances of its executor) and puts it into words, in English
// and Chinese. It is pure: whoever asks brings the rows and the time. Nothing
// on a trigger's way depends on it.
package explain

import "time"

// Text is the same sentence in both languages.
type Text struct{ En, Zh string }

// Step is one thing that happened to a run, or was decided about it.
type Step struct {
	At   time.Time
	Code string // stable, for machines
	Text Text
}

// Candidate is an instance that might have run it.
type Candidate struct {
	ID      int64
	Name    string
	Verdict Verdict
	Text    Text
}

// Verdict is why an instance was chosen or not.
type Verdict string

// Verdicts. Those about the past follow from rows; who was full at that moment
// stands in the run's own (docs/adr/0037).
const (
	Chosen        Verdict = "chosen"
	Refused       Verdict = "refused"        // it got an offer that led to nothing
	NotChosen     Verdict = "not_chosen"     // it had room; the routing strategy took another one
	NoHandler     Verdict = "no_handler"     // it does not serve the handler
	LabelMismatch Verdict = "label_mismatch" // it lacks labels that the job requires
	NotConnected  Verdict = "not_connected"  // it came later, had gone, or was out of the sender's reach
	Silent        Verdict = "silent"         // its lease has run out
	Draining      Verdict = "draining"       // it takes nothing new
	Refusing      Verdict = "refusing"       // its journal cannot be written
	Full          Verdict = "full"           // all its slots are, or were, taken
	HasRoom       Verdict = "has_room"       // it could take it now
)

// Explanation is the answer.
type Explanation struct {
	Summary Text
	// Party is whose doing it is that the run waits, or ended otherwise than well.
	Party      Party
	Steps      []Step
	Candidates []Candidate
}
