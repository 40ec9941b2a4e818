//go:build !failpoints

package failpoint

// Enabled guards what a call of Hit needs beside a constant name.
const Enabled = false

// Hit does nothing in this build.
func Hit(string) {}
