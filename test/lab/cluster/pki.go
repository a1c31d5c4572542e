package cluster

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// validFor is how long certificates are good: longer than any cluster here lives.
const validFor = 30 * 24 * time.Hour

// authority signs certificates. Its own and those that it signs are files of one folder.
type authority struct {
	dir  string
	name string
	cert *x509.Certificate
	key  crypto.Signer
}

// newAuthority makes an authority whose certificate is dir/name.crt.
func newAuthority(dir, name string) (*authority, error) {
	a := &authority{dir: dir, name: name}
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: name},
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
	der, key, err := sign(template, nil)
	if err != nil {
		return nil, fmt.Errorf("making the authority %s: %w", name, err)
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		return nil, fmt.Errorf("reading the certificate of the authority %s: %w", name, err)
	}
	a.key = key
	return a, writePair(dir, name, der, key)
}

// issue makes dir/name.crt and dir/name.key, for a server of the given names and addresses, and for a client that is
// the user with these groups.
func (a *authority) issue(name, user string, groups, hosts []string) error {
	template := &x509.Certificate{
		Subject:     pkix.Name{CommonName: user, Organization: groups},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	for _, h := range hosts {
		if ip := net.ParseIP(h); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, h)
		}
	}
	der, key, err := sign(template, a)
	if err != nil {
		return fmt.Errorf("making the certificate %s: %w", name, err)
	}
	return writePair(a.dir, name, der, key)
}

// sign makes a certificate and its key; without an authority it signs itself.
func sign(template *x509.Certificate, by *authority) ([]byte, crypto.Signer, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120)); err != nil {
		return nil, nil, err
	}
	template.NotBefore = time.Now().Add(-time.Minute) // a reader's clock may be a little late
	template.NotAfter = template.NotBefore.Add(validFor)
	parent, signer := template, crypto.Signer(key)
	if by != nil {
		parent, signer = by.cert, by.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	return der, key, err
}

func writePair(dir, name string, der []byte, key crypto.Signer) error {
	if err := writePEM(filepath.Join(dir, name+".crt"), "CERTIFICATE", der); err != nil {
		return err
	}
	return writeKey(filepath.Join(dir, name+".key"), key)
}

func writeKey(file string, key crypto.Signer) error {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return fmt.Errorf("encoding %s: %w", file, err)
	}
	return writePEM(file, "PRIVATE KEY", der)
}

// writeSigner makes the key that service accounts' tokens are signed with: dir/name.key, and dir/name.pub to check them.
func writeSigner(dir, name string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("making the key %s: %w", name, err)
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return fmt.Errorf("encoding the key %s: %w", name, err)
	}
	if err := writePEM(filepath.Join(dir, name+".pub"), "PUBLIC KEY", public); err != nil {
		return err
	}
	return writeKey(filepath.Join(dir, name+".key"), key)
}

func writePEM(file, kind string, der []byte) error {
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		return fmt.Errorf("writing %s: %w", file, err)
	}
	return nil
}
