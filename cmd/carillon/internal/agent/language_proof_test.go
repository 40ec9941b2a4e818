//go:build proof

package agent

func init() { needed = append(needed, "php") }
