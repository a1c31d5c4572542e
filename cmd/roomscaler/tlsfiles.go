package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/spf13/pflag"
)

// tlsFiles are the flags of one listener's TLS. The files are read again as they change.
type tlsFiles struct{ prefix, cert, key, clientCA string }

func (t *tlsFiles) flags(f *pflag.FlagSet, prefix, what string) {
	t.prefix = prefix
	f.StringVar(&t.cert, prefix+"tls-cert", "", "certificate of "+what+" (PEM file, with its chain); default: no TLS")
	f.StringVar(&t.key, prefix+"tls-key", "", "key of that certificate (PEM file)")
	f.StringVar(&t.clientCA, prefix+"tls-client-ca", "", "authorities of the certificates that clients must show (PEM file); default: none must be shown")
}

// config returns nil when there is to be no TLS.
func (t *tlsFiles) config(log *slog.Logger) (*tls.Config, error) {
	switch {
	case t.cert == "" && t.key == "" && t.clientCA == "":
		return nil, nil
	case t.cert == "":
		return nil, wrong(t.prefix+"tls-cert", "is missing; give the certificate that belongs to the other TLS files")
	case t.key == "":
		return nil, wrong(t.prefix+"tls-key", "is missing; give the key of the certificate")
	}
	first, err := t.read()
	if err != nil {
		return nil, usage(err)
	}
	r := &reloaded{read: t.read, log: log, now: first, at: time.Now()}
	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		NextProtos:         first.NextProtos,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return r.current(), nil },
	}, nil
}

func (t *tlsFiles) read() (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(t.cert, t.key)
	if err != nil {
		return nil, fmt.Errorf("--%stls-cert and --%stls-key: %w", t.prefix, t.prefix, err)
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}, Certificates: []tls.Certificate{pair}}
	if t.clientCA != "" {
		pool, err := certPool(t.prefix+"tls-client-ca", t.clientCA)
		if err != nil {
			return nil, err
		}
		c.ClientCAs, c.ClientAuth = pool, tls.RequireAndVerifyClientCert
	}
	return c, nil
}

func certPool(flag, path string) (*x509.CertPool, error) {
	pem, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("--%s: %w", flag, err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("--%s: %s holds no PEM certificate", flag, path)
	}
	return pool, nil
}

// reloadEvery is how old a listener's certificate may be at a handshake.
const reloadEvery = 10 * time.Second

// reloaded is a TLS configuration that is read again at a handshake when it is old. What cannot be
// read stays as it was, and is logged.
type reloaded struct {
	read func() (*tls.Config, error)
	log  *slog.Logger

	mu  sync.Mutex
	now *tls.Config
	at  time.Time
}

func (r *reloaded) current() *tls.Config {
	r.mu.Lock()
	old, due := r.now, time.Since(r.at) >= reloadEvery
	if due {
		r.at = time.Now() // one handshake reads, the others go on
	}
	r.mu.Unlock()
	if !due {
		return old
	}
	c, err := r.read()
	if err != nil {
		r.log.Error("certificate cannot be read again; the old one stays", "error", err)
		return old
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now = c
	return c
}
