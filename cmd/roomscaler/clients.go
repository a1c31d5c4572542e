package main

import (
	"bytes"
	"encoding/json"
	"os"
	"time"

	"github.com/roomscaler/roomscaler/broker/brokerapi"
	"github.com/roomscaler/roomscaler/broker/httpapi"
	"github.com/roomscaler/roomscaler/broker/janus"
)

// clients returns what a pool's pins tell clients besides the room: URLs, ICE servers and the token
// that Janus wants of them. Its files are read when the pool is made.
func (o *poolOptions) clients() (httpapi.Served, error) {
	s := httpapi.Served{URLs: o.urls()}
	var err error
	if s.ICEServers, err = readICEServers(o.iceServersFile); err != nil {
		return httpapi.Served{}, err
	}
	if o.janusTokenSecretFile == "" {
		return s, nil
	}
	if o.janusTokenTTL < time.Minute {
		return httpapi.Served{}, wrong("janus-token-ttl", "is below a minute: clients' clocks and Janus's may differ by more")
	}
	secret, err := readSecret("janus-token-secret-file", o.janusTokenSecretFile)
	if err != nil {
		return httpapi.Served{}, err
	}
	s.Token = func() string { return janus.SignedToken(secret, time.Now().Add(o.janusTokenTTL)) }
	return s, nil
}

func readICEServers(path string) ([]brokerapi.ICEServer, error) {
	const flag = "ice-servers-file"
	if path == "" {
		return nil, nil
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, wrong(flag, "%w", err)
	}
	var list []brokerapi.ICEServer
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&list); err != nil {
		return nil, wrong(flag, "%s is no JSON array such as [{\"urls\":[\"stun:stun.example.org\"]}]: %v", path, err)
	}
	for i, server := range list {
		if len(server.URLs) == 0 {
			return nil, wrong(flag, "server %d in %s has no urls", i+1, path)
		}
	}
	return list, nil
}
