// Package brokerapi is the one contract between the broker and its callers: the
// types of the HTTP API, its paths, its error codes and a client. It imports
// nothing of this module.
//
// Fields are added, never changed in meaning. Unknown fields of an answer are to be
// ignored; those of a request are refused by name, so brokers are upgraded first. Times are
// ages and remainders in milliseconds, so that no instant is compared across
// machines; created_at and last_seen are for people. Unknown numbers are absent or null, never 0.
package brokerapi
