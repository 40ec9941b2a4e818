// Package account answers: which server do commands ask, and as whom? It logs in
// and out, changes the password, and keeps the names of servers.
package account
