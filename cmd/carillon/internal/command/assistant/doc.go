// Package assistant answers: how does an assistant ask a server with the
// credentials of this command line?
package assistant
