// Package packaging answers: how does the server come onto a machine?
//
// It has no code but tests: the files for containers, systemd and Debian lie
// here, and build/release.sh makes of them what is handed out.
package packaging
