// Package provision answers: what has an operator declared that is to be there
// before anybody has signed in?
//
// A file in YAML names tenants with their quotas, executors, join tokens and API
// keys, and users (docs/guide/provision.md, docs/adr/0074). Read judges the file as a
// whole and tells all that is wrong with it, by line; Apply has the store make what
// is missing.
//
// Promises:
//   - A secret never stands in the file, and is never shown: the file names a file or
//     a variable that holds it.
//   - What is there already is neither changed nor deleted, so the same file can be
//     given at each start, to several nodes at once.
//   - Secrets of keys and tokens are as strong as those that package auth makes.
package provision
