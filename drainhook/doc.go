// Package drainhook holds the end of a pod until its media server is empty: the
// preStop hook.
//
// [Run] sets the hook's mark at the broker, so that no new room comes, and waits at the
// broker's drain endpoint. When the broker says that the instance is empty, the hook closes the server's
// door to new sessions, looks once more, and ends; if somebody slipped in, it reopens
// the door and goes on waiting.
//
// It never ends early because of an error, and never waits for nothing:
//
//   - A broker that is away, is rebuilding its directory, does not know the instance
//     or refuses the token is asked again and again. Meanwhile the local server's
//     sessions decide: none at all over several looks and half a minute is empty.
//   - A broker's word that it does not know yet is not "empty", and while it answers so
//     the local count does not overrule it: a room may be pinned here whose people
//     are still to come.
//   - A door that cannot be closed does not hold an instance that the broker calls
//     empty: it ends once that has been said over several looks and half a minute.
//   - A local server that has answered before and now refuses the connection, over
//     several looks, has ended, and its calls with it. One that has refused from the
//     start may as well be a wrong address, and proves nothing.
//
// The hook's clock starts at the call of Run and is the sum of its own steps, each capped,
// so that a suspended machine or a jumping clock ends nothing early. The
// broker's clock for the hook's mark does not end the wait: kubelet gives a repeated hook
// its full time again.
package drainhook
