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

// dialsAtOnce is the number of idle connections to one node that are kept open.
const dialsAtOnce = 16

// A Trust says which certificates are accepted as a node's. The zero value accepts those
// of the machine's certificate authorities.
type Trust struct {
	// Fingerprints are SHA-256 hashes of accepted certificates in hex, colons allowed. A
	// node prints its own when it starts. Such a certificate is accepted for every host
	// name.
	Fingerprints []string
	// CA are the accepted certificate authorities in PEM, instead of the machine's.
	CA []byte
}

// A CertificateError says that a node's certificate is not trusted. A caller who knows
// from another source that the fingerprint is the node's adds it to [Trust].
type CertificateError struct {
	Fingerprint string // SHA-256 of the certificate, hex
	Err         error  // why it is not trusted
}

func (e *CertificateError) Error() string {
	return fmt.Sprintf("the certificate with the fingerprint %s is not trusted: %v", e.Fingerprint, e.Err)
}

// Unwrap returns why the certificate is not trusted.
func (e *CertificateError) Unwrap() error { return e.Err }

// ParseFingerprint returns a fingerprint in the form in which it is compared: 64 hex
// digits in lower case. The text may have colons or spaces, and a prefix "sha256:".
func ParseFingerprint(text string) (string, error) {
	plain := strings.NewReplacer(":", "", " ", "").
		Replace(strings.TrimPrefix(strings.ToLower(strings.TrimSpace(text)), "sha256:"))
	if b, err := hex.DecodeString(plain); err != nil || len(b) != sha256.Size {
		return "", fmt.Errorf("fingerprint %q: a SHA-256 in hex is needed", text)
	}
	return plain, nil
}

// Transport returns an HTTP transport that connects only to nodes that t trusts.
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
			InsecureSkipVerify: true, // VerifyConnection verifies, on every handshake
			VerifyConnection:   func(c tls.ConnectionState) error { return verify(c.PeerCertificates, host, pins, roots) },
		}}
		return d.DialContext(ctx, network, addr)
	}
	return tr, nil
}

// verify accepts a certificate that is pinned, or that an authority of roots has signed.
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
