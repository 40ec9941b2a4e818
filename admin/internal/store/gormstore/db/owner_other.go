//go:build !unix

package db

// SameOwner does nothing where files have no owners as on Unix.
func SameOwner(string, ...string) error { return nil }
