package redisstore_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"testing"
	"time"
)

// certificates writes an authority, and a certificate and key for 127.0.0.1 by it.
func certificates(t *testing.T, dir string) (ca, cert, key string) {
	t.Helper()
	authority := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "redis"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, NotBefore: authority.NotBefore, NotAfter: authority.NotAfter,
	}
	caKey := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	leafKey := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	caDER := must(x509.CreateCertificate(rand.Reader, authority, authority, &caKey.PublicKey, caKey))(t)
	leafDER := must(x509.CreateCertificate(rand.Reader, leaf, authority, &leafKey.PublicKey, caKey))(t)
	keyDER := must(x509.MarshalECPrivateKey(leafKey))(t)
	block := func(name, kind string, der []byte) string {
		return write(t, dir, name, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
	}
	return block("ca.pem", "CERTIFICATE", caDER), block("cert.pem", "CERTIFICATE", leafDER), block("key.pem", "EC PRIVATE KEY", keyDER)
}

// freePort asks the kernel for one.
func freePort(t *testing.T) int {
	t.Helper()
	l := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}
