// Package provision answers: which documents does an operator want to be there before anybody
// has signed in?
//
// A provision file has the documents that carillon apply takes, of several tenants, and those of
// accounts and credentials (docs/guide/provision.md, docs/adr/0108). Read reads it, Try makes it
// on an empty database and tells all mistakes by line, and Apply makes the documents that are
// missing.
//
// Promises:
//   - A secret does not stand in the file and is not shown: the file names a file or a variable
//     that holds it.
//   - Existing objects are neither changed nor deleted. The same file can be given at each start, to
//     several nodes at once.
//   - Secrets of keys and tokens are as strong as those that package auth makes.
package provision
