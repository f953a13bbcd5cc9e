package transport

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"math/big"
	"runtime"

	"golang.org/x/sys/cpu"
)

// The application protocols that a connection can agree on. The first means
// that the Noise layer uses AES-GCM, the second ChaChaPoly: a node offers and
// takes the first only when its CPU has AES. The choice is part of the TLS
// transcript and so of the exporter value that the Noise handshake is bound to.
const (
	protoAES    = "selvage/1+aes"
	protoChaCha = "selvage/1"
)

// exporterLabel and exporterBytes say which value of RFC 8446 §7.5 the Noise
// prologue holds.
const (
	exporterLabel = "EXPORTER-selvage-noise"
	exporterBytes = 32
)

// hasAES reports whether this CPU does AES-GCM in hardware; elsewhere ChaChaPoly
// is faster and its timing leaks nothing.
func hasAES() bool {
	switch runtime.GOARCH {
	case "amd64", "386":
		return cpu.X86.HasAES && cpu.X86.HasPCLMULQDQ
	case "arm64":
		return cpu.ARM64.HasAES && cpu.ARM64.HasPMULL
	case "s390x":
		return cpu.S390X.HasAES && cpu.S390X.HasGHASH
	}
	return false
}

// tlsConfig returns the configuration for both directions, with a certificate
// that means nothing: QUIC requires one, Noise says who the peer is.
func tlsConfig(aes bool) (*tls.Config, error) {
	pub, priv, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("draw TLS key: %w", err)
	}
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(1)}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, pub, priv)
	if err != nil {
		return nil, fmt.Errorf("make TLS certificate: %w", err)
	}
	protos := []string{protoChaCha}
	if aes {
		protos = []string{protoAES, protoChaCha}
	}
	return &tls.Config{
		Certificates:           []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: priv}},
		InsecureSkipVerify:     true, // the Noise handshake authenticates; see the package comment
		NextProtos:             protos,
		MinVersion:             tls.VersionTLS13,
		SessionTicketsDisabled: true, // no resumption: each connection is authenticated anew
	}, nil
}
