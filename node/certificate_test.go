package node

import (
	"crypto/x509"
	"github.com/selvage-mesh/selvage/kit"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestTheNodeMakesItsCertificateOnce(t *testing.T) {
	n := &Node{conf: Config{Wall: kit.Clock(t), Dir: t.TempDir(), Name: "a", HTTP: "0.0.0.0:3100",
		HTTPNames: []string{"board.example"}}.withDefaults(), log: slog.New(slog.DiscardHandler)}
	first, err := n.certificate()
	if err != nil {
		t.Fatal(err)
	}
	again, err := n.certificate()
	if err != nil || again.fingerprint != first.fingerprint || len(first.fingerprint) != 64 {
		t.Errorf("a second certificate %v, %v", again, err)
	}
	file := filepath.Join(n.conf.Dir, "tls", "api.pem")
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	c, err := x509.ParseCertificate(first.pair.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"localhost", "board.example", "127.0.0.1", "::1"} {
		if err := c.VerifyHostname(name); err != nil {
			t.Error(err)
		}
	}
	if c.IsCA || !slices.Equal(c.ExtKeyUsage, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}) ||
		time.Until(c.NotAfter) < 365*24*time.Hour || !c.NotBefore.Before(time.Now()) {
		t.Errorf("certificate %+v", c)
	}
	if err := os.WriteFile(file, []byte("nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	if again, err := n.certificate(); err != nil || again.fingerprint == first.fingerprint {
		t.Errorf("in the place of a damaged certificate: %v", err)
	}
	if kept, err := os.ReadFile(file + ".damaged"); err != nil || string(kept) != "nonsense" {
		t.Errorf("the damaged certificate is not set aside: %q, %v", kept, err)
	}
	// The operator's certificate.
	given, err := makeCert("op", []string{"op.example"}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	own := filepath.Join(t.TempDir(), "own.pem")
	if err := os.WriteFile(own, given, 0o600); err != nil {
		t.Fatal(err)
	}
	n.conf.TLSCert, n.conf.TLSKey = own, own
	if got, err := n.certificate(); err != nil || got.fingerprint == first.fingerprint {
		t.Errorf("the operator's certificate: %v %v", got, err)
	}
}

func TestWhereTheAPIIsEncrypted(t *testing.T) {
	for _, c := range []struct {
		http, tls, cert string
		want, fails     bool
	}{
		{"127.0.0.1:3100", "", "", false, false},
		{"127.0.0.1:3100", TLSOn, "", true, false},
		{"127.0.0.1:3100", TLSAuto, "c", true, false},
		{"127.0.0.1:3100", TLSOff, "", false, false},
		{"127.0.0.1:3100", TLSOff, "c", false, true},
		{"0.0.0.0:3100", "", "", true, false},
		{"[::]:3100", TLSAuto, "c", true, false},
		{"192.0.2.1:3100", TLSOff, "", false, true},
		{"127.0.0.1:3100", "perhaps", "", false, true},
		{"none", "", "", false, false},
	} {
		conf := Config{Dir: "d", HTTP: c.http, TLS: c.tls, TLSCert: c.cert, TLSKey: c.cert}.withDefaults()
		if err := conf.Validate(); (err != nil) != c.fails {
			t.Errorf("%+v: %v", c, err)
		} else if got := conf.encrypts(); err == nil && got != c.want {
			t.Errorf("%+v: encrypted %v", c, got)
		}
	}
}

func TestTheClaimCodeStays(t *testing.T) {
	n := &Node{conf: Config{Wall: kit.Clock(t), Dir: t.TempDir()}}
	first, err := n.claimCode()
	if err != nil || len(first) < claimCodeLength {
		t.Fatal(first, err)
	}
	if again, err := n.claimCode(); err != nil || again != first {
		t.Errorf("%q became %q, %v", first, again, err)
	}
	if info, err := os.Stat(filepath.Join(n.conf.Dir, ClaimFile)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
}

// A damaged file with the loopback port is ignored.
func TestDamagedLoopbackAddress(t *testing.T) {
	for _, text := range []string{"", "127.0.0.1:1\x00", string(make([]byte, 16)), "127.0", "137.0.0.1:3200\n",
		"127.0.0.1:99999\n"} {
		n := &Node{conf: Config{Wall: kit.Clock(t), Dir: t.TempDir()}, log: slog.New(slog.DiscardHandler)}
		if err := os.WriteFile(filepath.Join(n.conf.Dir, nearFile), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := n.bindNear(); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		got, err := os.ReadFile(filepath.Join(n.conf.Dir, nearFile))
		if err != nil || string(got) != n.serving.nearAddr+"\n" || !strings.HasPrefix(n.serving.nearAddr, "127.0.0.1:") {
			t.Errorf("%q: now %q, %v", text, got, err)
		}
		if err := n.serving.near.Close(); err != nil {
			t.Error(err)
		}
	}
}
