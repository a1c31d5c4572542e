package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/roomscaler/roomscaler/broker"
	"github.com/roomscaler/roomscaler/broker/httpapi"
	"github.com/roomscaler/roomscaler/broker/janus"
)

// poolOptions are the flags of one pool. In a configuration file each pool may have its own.
type poolOptions struct {
	pool, store, backend, discover      string
	placement, emptyWhen                string
	target, maxSessions, participants   int
	sweepInterval, instanceTimeout      time.Duration
	lostAfter, roomTTL, roomTTLDraining time.Duration
	janusAdminSecretFile                string
	janusAdminKeyFile, roomKeyFile      string
	urlWS, urlHTTP                      string
	iceServersFile                      string
	janusTokenSecretFile                string
	janusTokenTTL                       time.Duration
}

func (o *poolOptions) flags(f *pflag.FlagSet) {
	f.StringVar(&o.pool, "pool", "default", "name of the pool: a DNS label")
	f.StringVar(&o.store, "store", "memory://", "where the directory is kept: memory:// (one replica only), redis://, redis+sentinel://, redis+cluster://, or with rediss for TLS")
	f.StringVar(&o.backend, "backend", "janus", "kind of the media servers")
	f.StringVar(&o.discover, "discover", "", "where the instances are: static:janus-0=http://127.0.0.1:7088/admin,…, dns:HOST:PORT of a headless Service, or kubernetes:NAMESPACE/SERVICE?port=NAME (required)")
	f.StringVar(&o.placement, "placement", string(broker.LeastLoaded), "how instances are chosen: least-loaded, packed or round-robin")
	f.IntVar(&o.target, "target", 0, "sessions per instance before a scaler says it; 0 = not said")
	f.StringVar(&o.emptyWhen, "empty-when", string(broker.EmptySessions), "when an instance without rooms is empty: sessions (none left) or rooms (nobody in one)")
	f.IntVar(&o.maxSessions, "max-sessions", 0, "sessions per instance that are never exceeded; 0 = no limit")
	f.IntVar(&o.participants, "default-participants", 2, "participants that a room counts for when the application does not say")
	f.DurationVar(&o.sweepInterval, "sweep-interval", 5*time.Second, "time between two looks at all instances; the same for all brokers of a pool")
	f.DurationVar(&o.instanceTimeout, "instance-timeout", 2*time.Second, "how long one call to an instance may take")
	f.DurationVar(&o.lostAfter, "lost-after", 5*time.Minute, "how long an instance may be silent that is unlisted, or whose node is not ready, before its rooms end")
	f.DurationVar(&o.roomTTL, "room-ttl", 10*time.Minute, "how long a room with nobody in it stays, from its last lookup")
	f.DurationVar(&o.roomTTLDraining, "room-ttl-draining", 2*time.Minute, "the same on an instance that is drained")
	f.StringVar(&o.janusAdminSecretFile, "janus-admin-secret-file", "", "file with the admin secret of the Janus servers; default: the one Janus comes with, which everybody knows")
	f.StringVar(&o.janusAdminKeyFile, "janus-admin-key-file", "", "file with the admin_key of their videoroom plugin; with one, rooms are private")
	f.StringVar(&o.roomKeyFile, "room-key-file", "", "file with the key that rooms' secrets and PINs are derived from, at least 16 bytes; default: derived from the admin secret")
	f.StringVar(&o.urlWS, "url-ws", "", "WebSocket URL for clients, with {instance}, {ordinal} and {address-host}; default: none is told")
	f.StringVar(&o.urlHTTP, "url-http", "", "HTTP URL for clients, with {instance}, {ordinal} and {address-host}; default: none is told")
	f.StringVar(&o.iceServersFile, "ice-servers-file", "", "file with the STUN and TURN servers for clients, a JSON array of WebRTC's RTCIceServer; default: none is told")
	f.StringVar(&o.janusTokenSecretFile, "janus-token-secret-file", "", "file with the token_auth_secret of the Janus servers: pins then carry a signed token for clients; default: no token")
	f.DurationVar(&o.janusTokenTTL, "janus-token-ttl", 24*time.Hour, "how long such a token is good for")
}

func (o *poolOptions) config(key broker.RoomKey) broker.Config {
	return broker.Config{
		Pool: o.pool, Placement: broker.Placement(o.placement), Target: o.target, EmptyWhen: broker.EmptyWhen(o.emptyWhen),
		MaxSessions: o.maxSessions, DefaultParticipants: o.participants,
		SweepInterval: o.sweepInterval, InstanceTimeout: o.instanceTimeout, LostAfter: o.lostAfter,
		RoomTTL: o.roomTTL, RoomTTLDraining: o.roomTTLDraining, Key: key,
	}
}

// check refuses what the core would take for "not said".
func (o *poolOptions) check() error {
	for _, d := range []struct {
		flag string
		v    time.Duration
	}{
		{"sweep-interval", o.sweepInterval}, {"instance-timeout", o.instanceTimeout}, {"lost-after", o.lostAfter},
		{"room-ttl", o.roomTTL}, {"room-ttl-draining", o.roomTTLDraining},
	} {
		if d.v <= 0 {
			return wrong(d.flag, "must be above zero; give a duration such as 5s")
		}
	}
	if o.participants < 1 {
		return wrong("default-participants", "must be above zero; give the participants of a usual room")
	}
	return asFlag(httpapi.CheckURLs(o.urls()))
}

func (o *poolOptions) urls() httpapi.URLs { return httpapi.URLs{WS: o.urlWS, HTTP: o.urlHTTP} }

func (o *poolOptions) adminSecret() (string, error) {
	if o.janusAdminSecretFile == "" {
		return janus.DefaultSecret, nil
	}
	return readSecret("janus-admin-secret-file", o.janusAdminSecretFile)
}

// roomKeyLabel keeps the derived key apart from every other use of the admin secret. It never changes: rooms that
// were made under another key are strangers.
const roomKeyLabel = "roomscaler room key v1"

func (o *poolOptions) roomKey() (broker.RoomKey, error) {
	if o.roomKeyFile != "" {
		k, err := readSecret("room-key-file", o.roomKeyFile)
		if err == nil && len(k) < 16 {
			err = wrong("room-key-file", "%s holds fewer than 16 bytes; fill it with openssl rand -base64 32", o.roomKeyFile)
		}
		return broker.RoomKey(k), err
	}
	secret, err := o.adminSecret()
	if err != nil {
		return nil, err
	}
	m := hmac.New(sha256.New, []byte(secret))
	m.Write([]byte(roomKeyLabel))
	return m.Sum(nil), nil
}

// readSecret reads a file without the white space around its content.
func readSecret(flag, path string) (string, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return "", wrong(flag, "%w", err)
	}
	s := strings.TrimSpace(string(b))
	if s == "" {
		return "", wrong(flag, "%s is empty", path)
	}
	return s, nil
}
