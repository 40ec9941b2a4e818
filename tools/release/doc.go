// Package release has the tests of what a release's tag gives to users: modules that an
// application requires, and a command that go install fetches.
package release
