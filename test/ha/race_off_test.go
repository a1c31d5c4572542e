//go:build !race

package ha

const hours = 10
