// Package api answers: what do you ask?
//
// It maps between API structs and nouns of package domain, and asks the store:
// a file for each noun, with its operations. A noun is a struct with its
// dependencies, which registers its own routes (nouns.go). Nouns that need little of
// the others have packages below, each with a Register and its Deps. How
// requests are answered at all, whatever they are about, is package web's.
//
// Promises:
//   - The tenant comes from the identity, never from the request: an object of
//     another tenant is "not found".
//   - Ids are strings, instants RFC 3339 UTC with milliseconds, durations
//     strings such as "1m30s".
package api

//go:generate go test -run "^Test(DocumentIs|SchemasAre)CheckedIn$" -update .
