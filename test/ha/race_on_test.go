//go:build race

package ha

const hours = 2 // the race detector makes each five times as long
