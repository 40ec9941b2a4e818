// Package secret answers: how are secrets kept at rest?
//
// A Box seals small secrets (webhook signing keys, channel passwords) with
// AES-256-GCM before they go into the database. The key never goes there: it
// is a file in the data directory with mode 0600, or is given by the operator.
//
// What was sealed for one place cannot be used in another one: tenant, purpose
// and object id are authenticated together with the value, so a ciphertext
// that somebody moved to another row does not open.
//
// All nodes on one database need the same key. The first node leaves the key's
// fingerprint in the cluster's values (Claim); a node with another key is
// refused at its start, before it could write what the others cannot read.
package secret
