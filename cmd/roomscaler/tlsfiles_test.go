package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"
)

// authority signs certificates for a test.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{}
	a.cert, a.key, a.pem, _ = a.sign(t, "authority")
	return a
}

// sign returns a certificate for 127.0.0.1 under the name; an authority without a certificate signs itself.
func (a *authority) sign(t *testing.T, name string) (*x509.Certificate, *ecdsa.PrivateKey, []byte, []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1<<33, 0),
		IsCA: a.cert == nil, BasicConstraintsValid: true,
	}
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return parsed, key, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw})
}

func put(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestTLSFiles(t *testing.T) {
	ca, other := newAuthority(t), newAuthority(t)
	dir := t.TempDir()
	f := tlsFiles{cert: filepath.Join(dir, "cert"), key: filepath.Join(dir, "key"), clientCA: filepath.Join(dir, "ca")}
	serve := func(name string) {
		_, _, cert, key := ca.sign(t, name)
		put(t, f.cert, cert)
		put(t, f.key, key)
	}
	pool := x509.NewCertPool()
	pool.AddCert(ca.cert)
	// shake returns the name in the server's certificate and the server's verdict.
	shake := func(server *tls.Config, show *authority) (string, error) {
		client := &tls.Config{RootCAs: pool, ServerName: "127.0.0.1"}
		if show != nil {
			_, _, cert, key := show.sign(t, "client")
			pair, err := tls.X509KeyPair(cert, key)
			if err != nil {
				t.Fatal(err)
			}
			client.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
		}
		a, b := net.Pipe()
		defer a.Close()
		defer b.Close()
		verdict := make(chan error, 1)
		go func() {
			verdict <- tls.Server(b, server).Handshake()
			b.Close()
		}()
		c := tls.Client(a, client)
		if err := c.Handshake(); err != nil {
			a.Close()
			<-verdict
			return "", err
		}
		c.Read(make([]byte, 1)) // the server's verdict comes after the client's handshake
		return c.ConnectionState().PeerCertificates[0].Subject.CommonName, <-verdict
	}
	serve("first")
	put(t, f.clientCA, ca.pem)
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		config, err := f.config(slog.New(slog.NewTextHandler(&log, nil)))
		if err != nil {
			t.Fatal(err)
		}
		if name, err := shake(config, ca); err != nil || name != "first" {
			t.Errorf("a known client gets %q, %v", name, err)
		}
		if _, err := shake(config, nil); err == nil {
			t.Error("a client without a certificate is let in")
		}
		if _, err := shake(config, other); err == nil {
			t.Error("a strange client is let in")
		}
		serve("second")
		put(t, f.clientCA, other.pem)
		time.Sleep(reloadEvery)
		if name, err := shake(config, other); err != nil || name != "second" {
			t.Errorf("after the change a client of the new authority gets %q, %v", name, err)
		}
		if _, err := shake(config, ca); err == nil {
			t.Error("after the change a client of the old authority is let in")
		}
		put(t, f.cert, []byte("half a fi"))
		time.Sleep(reloadEvery)
		if name, err := shake(config, other); err != nil || name != "second" || !bytes.Contains(log.Bytes(), []byte("the old one stays")) {
			t.Errorf("with a broken file a client gets %q, %v; log %q", name, err, log.String())
		}
	})
}
