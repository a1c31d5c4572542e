// Package redisstore is the directory of one pool in Redis 7.0 or later: one server, a
// master with replicas under Sentinel, or a cluster.
//
// # Steps
//
// Each method is one Lua script. All keys of a pool share a hash tag and are
// declared by every script, so that a cluster that moves the pool's slot refuses the
// step instead of running it on a half of the keys. Room and instance names are
// never part of a key's name.
//
// # History
//
// A term holds for one replication history: the server's master_replid, as INFO
// tells it, is stored with the term and compared by every step that changes or
// decides something. It changes when the server restarts, when a replica takes over, when
// the pool's slot moves to another server, and when a master has been without
// replicas for repl-backlog-ttl; each of these may have lost the last writes, so each is
// ErrStoreLost and the directory is rebuilt from the instances. Lookup of a room that
// is there asks nothing of it: a room does not move.
//
// State and Facts write too (the clock). A master that is cut off from its
// replicas, and has min-replicas-to-write set, therefore refuses them: a plan that it
// remembers may be out of force. Lookup and Pins go on in that case, and when
// the memory is full, with a clock that stands still and without a touch.
//
// # Retries
//
// The client may send a step again when its answer was lost, so each can be applied
// twice with the answer and the effect of once. Each call carries a nonce. A claim, an adoption, an
// end, a fence, a rebirth, a forgetting, a failed look and a plan store it with what they did, so that
// the step knows its own work again. The others are repeatable as they are.
//
// # Rights
//
// A user of the server's ACL needs the keys roomscaler:{POOL}:* and [Commands].
package redisstore
