package janus

import (
	"crypto/hmac"
	"crypto/sha1" // the algorithm is Janus's; a MAC does not rest on collisions
	"encoding/base64"
	"strconv"
	"time"
)

// SignedToken returns a token for a Janus with token_auth and this token_auth_secret: whoever shows it may
// use the videoroom until the time given. Its form is that of Janus's auth.c: the expiry in Unix seconds, the realm and
// the plugins, then a colon and the HMAC-SHA1 of that, in base64.
func SignedToken(secret string, expires time.Time) string {
	claim := strconv.FormatInt(expires.Unix(), 10) + ",janus," + videoroom
	mac := hmac.New(sha1.New, []byte(secret))
	mac.Write([]byte(claim))
	return claim + ":" + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}
