//go:build !race

package admin_test

const memoryFactor = 1
