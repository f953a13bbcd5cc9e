package client

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
)

// dialsAtOnce is how many connections to one node are kept open between calls.
const dialsAtOnce = 16

// A Trust says which certificates are a node's. The zero value trusts those that
// the machine's authorities vouch for.
type Trust struct {
	// Fingerprints are SHA-256 sums of certificates in hex, colons allowed, as a node
	// tells its own when it starts. Such a certificate is good for every name.
	Fingerprints []string
	// CA are certificates in PEM that vouch for others, instead of the machine's.
	CA []byte
}

// A CertificateError says that a node's certificate is not trusted. Whoever knows
// by another way that the fingerprint is the node's adds it to [Trust].
type CertificateError struct {
	Fingerprint string // SHA-256 of the certificate, hex
	Err         error  // why nobody vouches for it
}

func (e *CertificateError) Error() string {
	return fmt.Sprintf("the certificate with the fingerprint %s is not trusted: %v", e.Fingerprint, e.Err)
}

// Unwrap returns why nobody vouches for the certificate.
func (e *CertificateError) Unwrap() error { return e.Err }

// ParseFingerprint returns a fingerprint as it is compared: 64 digits in lower
// case. It may be given with colons or spaces, and with "sha256:" before it.
func ParseFingerprint(text string) (string, error) {
	plain := strings.NewReplacer(":", "", " ", "").Replace(strings.TrimPrefix(strings.ToLower(strings.TrimSpace(text)), "sha256:"))
	if b, err := hex.DecodeString(plain); err != nil || len(b) != sha256.Size {
		return "", fmt.Errorf("fingerprint %q: a SHA-256 in hex is needed", text)
	}
	return plain, nil
}

// Transport returns what makes connections to nodes that t trusts.
func (t Trust) Transport() (*http.Transport, error) {
	var pins []string
	for _, f := range t.Fingerprints {
		plain, err := ParseFingerprint(f)
		if err != nil {
			return nil, err
		}
		pins = append(pins, plain)
	}
	var roots *x509.CertPool
	if len(t.CA) > 0 {
		if roots = x509.NewCertPool(); !roots.AppendCertsFromPEM(t.CA) {
			return nil, errors.New("no certificate in the PEM of the authorities")
		}
	}
	tr := http.DefaultTransport.(*http.Transport).Clone()
	tr.MaxIdleConnsPerHost = dialsAtOnce
	tr.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots} // through a proxy
	tr.DialTLSContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		host, _, err := net.SplitHostPort(addr)
		if err != nil {
			return nil, err
		}
		d := tls.Dialer{Config: &tls.Config{
			MinVersion: tls.VersionTLS12, ServerName: host, NextProtos: []string{"http/1.1"},
			InsecureSkipVerify: true, // VerifyConnection does it, on every handshake
			VerifyConnection:   func(c tls.ConnectionState) error { return verify(c.PeerCertificates, host, pins, roots) },
		}}
		return d.DialContext(ctx, network, addr)
	}
	return tr, nil
}

// verify trusts a certificate that is pinned, or that somebody vouches for.
func verify(chain []*x509.Certificate, host string, pins []string, roots *x509.CertPool) error {
	if len(chain) == 0 {
		return errors.New("the node showed no certificate")
	}
	sum := sha256.Sum256(chain[0].Raw)
	fingerprint := hex.EncodeToString(sum[:])
	if slices.Contains(pins, fingerprint) {
		return nil
	}
	between := x509.NewCertPool()
	for _, c := range chain[1:] {
		between.AddCert(c)
	}
	if _, err := chain[0].Verify(x509.VerifyOptions{DNSName: host, Roots: roots, Intermediates: between}); err != nil {
		return &CertificateError{fingerprint, err}
	}
	return nil
}
