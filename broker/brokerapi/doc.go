// Package brokerapi is the one contract between the broker and its callers: the
// types of the HTTP API, its paths, its error codes and a client. It imports
// nothing of this module.
//
// Fields are added, never changed in meaning; unknown fields are ignored. Times are
// ages and remainders in milliseconds, so that no instant is compared across
// machines; created_at and last_seen are for people. Unknown numbers are absent or null, never 0.
package brokerapi
