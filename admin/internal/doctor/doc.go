// Package doctor answers: would a node work here, and if not, what is to be done?
//
// It runs checks side by side, each with a deadline of its own, and collects
// what they found. A check that needs another one's success waits for it, and
// is skipped with that reason when there is none. One that does not come back
// is given up: the report is there within Limit, whatever hangs.
//
// The parts of files, ports and certificates are here. Package check puts all checks of a node
// together.
package doctor
