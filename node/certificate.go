package node

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"
)

const (
	// certAge is the validity of a self-signed certificate: clients identify it by its
	// fingerprint, so it is made once.
	certAge = 10 * 365 * 24 * time.Hour
	// certSlack is the accepted difference between clocks.
	certSlack = 24 * time.Hour
	// maxCertNames bounds the names and addresses in a certificate.
	maxCertNames = 64
)

// A servedCert is the certificate of the API.
type servedCert struct {
	pair        tls.Certificate
	fingerprint string // SHA-256 of the leaf, hex
}

func certOf(pair tls.Certificate) *servedCert {
	sum := sha256.Sum256(pair.Certificate[0])
	return &servedCert{pair, hex.EncodeToString(sum[:])}
}

// certificate reads the operator's certificate, or the node's own, which it creates when
// there is none.
func (n *Node) certificate() (*servedCert, error) {
	if n.conf.TLSCert != "" {
		pair, err := tls.LoadX509KeyPair(n.conf.TLSCert, n.conf.TLSKey)
		if err != nil {
			return nil, fmt.Errorf("certificate of the API: %w", err)
		}
		return certOf(pair), nil
	}
	dir := filepath.Join(n.conf.Dir, "tls")
	file := filepath.Join(dir, "api.pem")
	b, err := os.ReadFile(file)
	if err == nil {
		pair, damage := ownPair(b)
		if damage == nil {
			return certOf(pair), nil
		}
		kept := file + ".damaged"
		n.log.Warn("the API's own certificate is damaged and is made again; clients that pinned it must take the new one",
			"file", file, "kept", kept, "error", damage)
		if err := os.Rename(file, kept); err != nil {
			return nil, err
		}
		b, err = nil, os.ErrNotExist
	}
	if errors.Is(err, os.ErrNotExist) {
		if b, err = makeCert(n.conf.Name, n.certNames(), n.conf.Wall()); err != nil {
			return nil, err
		}
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
		err = writeWhole(file, b)
	}
	if err != nil {
		return nil, err
	}
	pair, err := ownPair(b)
	if err != nil {
		return nil, err
	}
	return certOf(pair), nil
}

// ownPair reads a certificate that a node made, and checks that it is self-signed.
func ownPair(b []byte) (pair tls.Certificate, err error) {
	if pair, err = tls.X509KeyPair(b, b); err != nil {
		return pair, err
	}
	leaf, err := x509.ParseCertificate(pair.Certificate[0])
	if err != nil {
		return pair, err
	}
	return pair, leaf.CheckSignature(leaf.SignatureAlgorithm, leaf.RawTBSCertificate, leaf.Signature)
}

// writeWhole writes a file atomically, readable by its owner only.
func writeWhole(path string, b []byte) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*") // 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(b)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// certNames returns the names and addresses at which clients may reach the API.
func (n *Node) certNames() []string {
	names := []string{"localhost", "127.0.0.1", "::1"}
	host, _, _ := net.SplitHostPort(n.conf.HTTP)
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		addrs, _ := net.InterfaceAddrs()
		for _, a := range addrs {
			if p, ok := a.(*net.IPNet); ok && !p.IP.IsLinkLocalUnicast() {
				names = append(names, p.IP.String())
			}
		}
	} else {
		names = append(names, host)
	}
	names = append(names, n.httpNames()...)
	slices.Sort(names)
	names = slices.Compact(names)
	return names[:min(len(names), maxCertNames)]
}

// makeCert creates a self-signed certificate and its key, both as PEM.
func makeCert(name string, names []string, now time.Time) ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	c := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "selvage " + name}, NotBefore: now.Add(-certSlack),
		NotAfter: now.Add(certAge),
		// Clients trust this certificate itself, so it must not sign others.
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
	}
	for _, n := range names {
		if ip := net.ParseIP(n); ip != nil {
			c.IPAddresses = append(c.IPAddresses, ip)
		} else {
			c.DNSNames = append(c.DNSNames, n)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})...), nil
}
