package main

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/roomscaler/roomscaler/broker/brokerapi"
)

// brokerClientOptions are the flags of whoever calls a broker.
type brokerClientOptions struct{ url, tokenFile, ca, cert, key string }

func (o *brokerClientOptions) flags(f *pflag.FlagSet, scope string) {
	f.StringVar(&o.url, "broker", "http://127.0.0.1:8080", "URL of the broker")
	f.StringVar(&o.tokenFile, "broker-token-file", "", "file that holds the bearer token for the broker, of scope "+scope+"; read again for each call")
	f.StringVar(&o.ca, "broker-ca", "", "PEM file of the authorities that sign the broker's certificate; default: the system's")
	f.StringVar(&o.cert, "broker-cert", "", "certificate to show to a broker that wants one (PEM file)")
	f.StringVar(&o.key, "broker-key", "", "its key (PEM file)")
}

func (o *brokerClientOptions) client() (*brokerapi.Client, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if o.ca != "" {
		pool, err := certPool("broker-ca", o.ca)
		if err != nil {
			return nil, usage(err)
		}
		config.RootCAs = pool
	}
	switch {
	case (o.cert == "") != (o.key == ""):
		return nil, wrong("broker-cert", "needs --broker-key, and the other way round; give both or neither")
	case o.cert != "":
		read := func() (*tls.Certificate, error) {
			pair, err := tls.LoadX509KeyPair(o.cert, o.key)
			if err != nil {
				return nil, fmt.Errorf("--broker-cert and --broker-key: %w", err)
			}
			return &pair, nil
		}
		if _, err := read(); err != nil {
			return nil, usage(err)
		}
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return read() }
	}
	if o.tokenFile != "" {
		if _, err := readSecret("broker-token-file", o.tokenFile); err != nil {
			return nil, err
		}
	}
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, MaxIdleConnsPerHost: 16, IdleConnTimeout: 90 * time.Second, ForceAttemptHTTP2: true, TLSClientConfig: config}
	c, err := brokerapi.NewClient(o.url, o.token, &http.Client{Transport: transport})
	if err != nil {
		return nil, wrong("broker", "%s", strings.TrimPrefix(err.Error(), "broker URL: "))
	}
	return c, nil
}

func (o *brokerClientOptions) token() (string, error) {
	if o.tokenFile == "" {
		return "", nil
	}
	b, err := os.ReadFile(o.tokenFile)
	if err != nil {
		return "", fmt.Errorf("--broker-token-file: %w", err)
	}
	return strings.TrimSpace(string(b)), nil
}
