package brokerapi

import (
	"net/url"
	"strings"
)

// The paths of the API, as patterns. A name in braces is one percent-encoded segment.
const (
	PathPool      = "/v1/pools/{pool}"
	PathPlan      = "/v1/pools/{pool}/plan"
	PathRooms     = "/v1/pools/{pool}/rooms"
	PathRoom      = "/v1/pools/{pool}/rooms/{room}"
	PathInstances = "/v1/pools/{pool}/instances"
	PathInstance  = "/v1/pools/{pool}/instances/{instance}"
	PathDrain     = "/v1/pools/{pool}/instances/{instance}/drain"
	PathLost      = "/v1/pools/{pool}/instances/{instance}/lost"
	PathOpenAPI   = "/openapi.json"
	PathLive      = "/livez"
	PathReady     = "/readyz"
	PathMetrics   = "/metrics"
)

// Path fills a pattern's names in their order, each percent-encoded.
func Path(pattern string, names ...string) string {
	var b strings.Builder
	for seg := range strings.SplitSeq(strings.TrimPrefix(pattern, "/"), "/") {
		b.WriteByte('/')
		if strings.HasPrefix(seg, "{") && len(names) > 0 {
			seg, names = EscapeSegment(names[0]), names[1:]
		}
		b.WriteString(seg)
	}
	return b.String()
}

// EscapeSegment percent-encodes a name so that it stays one segment of a path. Unlike
// url.PathEscape it encodes the names "." and ".." too, which URL libraries and
// proxies would otherwise resolve away.
func EscapeSegment(name string) string {
	if name == "." || name == ".." {
		return strings.ReplaceAll(name, ".", "%2E")
	}
	return url.PathEscape(name)
}
