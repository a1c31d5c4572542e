// Package janus is the broker's backend for Janus and its videoroom plugin.
//
// It speaks the admin API over HTTP alone, holds no session on the server and so adds nothing to the load it
// reports. An address is the admin API's, such as http://127.0.0.1:7088/admin.
//
// An answer of Janus has three layers, each of which may carry the error: the transport (no connection, a status
// other than 200, no body), the core ("janus":"error" inside a 200) and the plugin ("error_code" inside a "success").
// Every error of this package is a *broker.FaultError. It wraps broker.ErrRefused when the request certainly had no
// effect: it was never sent, or Janus said no. It wraps broker.ErrUncertain when it was sent and no sensible answer came.
//
// The rooms it makes are never permanent, have a secret and a PIN that are derived from the room key, and are private where
// the videoroom has an admin_key. Without an admin_key Janus never lists a private room, not even to its
// administrator, so there they are public: any client of that server can then read their descriptions, but neither join nor
// destroy them.
package janus
