package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/roomscaler/roomscaler/broker/brokerapi"
)

// brokerOptions are the flags of the way to the broker, as roomscaler scaler has them.
type brokerOptions struct{ url, tokenFile, ca, cert, key string }

func (o *brokerOptions) flags(f *pflag.FlagSet) {
	f.StringVar(&o.url, "broker", "http://127.0.0.1:8080", "URL of the broker")
	f.StringVar(&o.tokenFile, "broker-token-file", "", "file that holds the bearer token for the broker, of scope scaler; read again for each call")
	f.StringVar(&o.ca, "broker-ca", "", "PEM file of the authorities that sign the broker's certificate; default: the system's")
	f.StringVar(&o.cert, "broker-cert", "", "certificate to show to a broker that wants one (PEM file)")
	f.StringVar(&o.key, "broker-key", "", "its key (PEM file)")
}

// client returns a client of the broker. Errors are *usageError.
func (o *brokerOptions) client() (*brokerapi.Client, error) {
	config, err := o.tls()
	if err != nil {
		return nil, &usageError{err}
	}
	if _, err := o.token(); err != nil {
		return nil, &usageError{err}
	}
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, MaxIdleConnsPerHost: 16, IdleConnTimeout: 90 * time.Second, ForceAttemptHTTP2: true, TLSClientConfig: config}
	c, err := brokerapi.NewClient(o.url, o.token, &http.Client{Transport: transport})
	if err != nil {
		return nil, &usageError{fmt.Errorf("--broker: %s", strings.TrimPrefix(err.Error(), "broker URL: "))}
	}
	return c, nil
}

func (o *brokerOptions) tls() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if o.ca != "" {
		pem, err := os.ReadFile(o.ca)
		if err != nil {
			return nil, fmt.Errorf("--broker-ca: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("--broker-ca: %s holds no PEM certificate", o.ca)
		}
	}
	if (o.cert == "") != (o.key == "") {
		return nil, errors.New("--broker-cert: needs --broker-key, and the other way round; give both or neither")
	}
	if o.cert == "" {
		return config, nil
	}
	// Read at each handshake, so that a renewed one is used without a restart.
	read := func() (*tls.Certificate, error) {
		pair, err := tls.LoadX509KeyPair(o.cert, o.key)
		if err != nil {
			return nil, fmt.Errorf("--broker-cert and --broker-key: %w", err)
		}
		return &pair, nil
	}
	if _, err := read(); err != nil {
		return nil, err
	}
	config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return read() }
	return config, nil
}

func (o *brokerOptions) token() (string, error) {
	if o.tokenFile == "" {
		return "", nil
	}
	b, err := os.ReadFile(o.tokenFile)
	if err != nil {
		return "", fmt.Errorf("--broker-token-file: %w", err)
	}
	return strings.TrimSpace(string(b)), nil
}
