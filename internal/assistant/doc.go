// Package assistant answers: what may a program that speaks for a person, such as
// an assistant with a language model, see and do, over the Model Context Protocol?
//
// Each tool is a few operations of the HTTP API, asked with the caller's own
// credentials. It decides nothing about rights: what the API refuses, a tool
// refuses, and says who may allow it. Tools that change something exist only where
// the operator has allowed them.
//
// What jobs and people wrote (logs, errors, outputs, notes) is hostile to a reader
// that follows instructions. It leaves here bounded, without characters that nobody
// sees, in double quotes or between two marks that it cannot guess. Nothing else in
// an answer is theirs. docs/adr/0086.
package assistant
