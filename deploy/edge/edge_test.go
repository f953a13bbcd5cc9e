package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// made is a release for this machine's platform, made once for all tests, and again
// is the same once more, made while tests wait.
var made struct {
	dir, key string
	again    string
	err      chan error // of making it again
}

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "edge-")
	if err == nil {
		made.dir, made.key = filepath.Join(dir, "dist"), filepath.Join(dir, "key")
		err = run(context.Background(), []string{"keygen", made.key})
	}
	var args []string
	if err == nil {
		args = []string{"-root", "../..", "-version", "v1.2.3", "-targets", "linux/" + runtime.GOARCH, "-key",
			made.key, "-out"}
		made.again, made.err = filepath.Join(dir, "again"), make(chan error, 1)
		err = run(context.Background(), append(slices.Clone(args), made.dir))
	}
	if err == nil { // while tests wait
		go func() { made.err <- run(context.Background(), append(args, made.again)) }()
	}
	code := 1
	if err == nil {
		code = m.Run()
	} else {
		fmt.Fprintln(os.Stderr, err)
	}
	os.RemoveAll(dir)
	os.Exit(code)
}

func needs(t *testing.T, programs ...string) {
	t.Helper()
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			t.Skipf("%s is not on this machine", p)
		}
	}
}

func out(t *testing.T, name string, args ...string) string {
	t.Helper()
	b, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, b)
	}
	return string(b)
}

// copyRelease gives a test a release of its own to spoil.
func copyRelease(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"SHA256SUMS", "SHA256SUMS.sig", "install.sh", "selvage_1.2.3_linux_" + runtime.GOARCH +
		".tar.gz"} {
		b, err := os.ReadFile(filepath.Join(made.dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestInstallFromFolderAndByHTTP(t *testing.T) {
	t.Parallel()
	needs(t, "openssl", "curl")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: http.FileServer(http.Dir(made.dir)), ReadHeaderTimeout: time.Minute}
	go srv.Serve(l)
	defer srv.Close()
	for _, from := range []string{made.dir, "http://" + l.Addr().String()} {
		prefix := t.TempDir()
		out(t, "sh", filepath.Join(made.dir, "install.sh"), "--from", from, "--prefix", prefix)
		if got := out(t, filepath.Join(prefix, "bin/selvage"), "--version"); !strings.Contains(got, "1.2.3") {
			t.Errorf("installed from %s: %s", from, got)
		}
	}
}

func TestInstallRefuses(t *testing.T) {
	needs(t, "openssl")
	archive := "selvage_1.2.3_linux_" + runtime.GOARCH + ".tar.gz"
	spoil := func(name string) func(*testing.T, string) []string {
		return func(t *testing.T, dir string) []string {
			b, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			b[len(b)/2] ^= 1
			if err := os.WriteFile(filepath.Join(dir, name), b, 0o644); err != nil {
				t.Fatal(err)
			}
			return nil
		}
	}
	remove := func(name string) func(*testing.T, string) []string {
		return func(t *testing.T, dir string) []string {
			if err := os.Remove(filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
			return nil
		}
	}
	for name, c := range map[string]struct {
		spoil func(*testing.T, string) []string
		says  string
	}{
		"a changed program":  {spoil(archive), "is not what was signed"},
		"changed sums":       {spoil("SHA256SUMS"), "signature of the release is not of this key"},
		"a broken signature": {spoil("SHA256SUMS.sig"), "signature of the release is not of this key"},
		"no signature":       {remove("SHA256SUMS.sig"), "SHA256SUMS.sig is not to be had"},
		"no program":         {remove(archive), archive + " is not to be had"},
		"another key": {func(t *testing.T, dir string) []string {
			key := filepath.Join(t.TempDir(), "other")
			if err := keygen(key); err != nil {
				t.Fatal(err)
			}
			return []string{"--key", key + ".pub"}
		}, "signature of the release is not of this key"},
	} {
		t.Run(name, func(t *testing.T) {
			dir, prefix := copyRelease(t), filepath.Join(t.TempDir(), "prefix")
			args := append([]string{filepath.Join(dir, "install.sh"), "--prefix", prefix}, c.spoil(t, dir)...)
			b, err := exec.CommandContext(t.Context(), "sh", args...).CombinedOutput()
			if err == nil || !strings.Contains(string(b), c.says) {
				t.Errorf("err %v, said %s", err, b)
			}
			if _, err := os.Stat(filepath.Join(prefix, "bin/selvage")); err == nil {
				t.Error("it was installed nevertheless")
			}
		})
	}
}

// TestUnsignedReleaseIsNotInstalled: a script without a key asks for one.
func TestUnsignedReleaseIsNotInstalled(t *testing.T) {
	needs(t, "openssl")
	b, err := exec.CommandContext(t.Context(), "sh", "files/install.sh", "--from", made.dir, "--prefix", t.TempDir()).
		CombinedOutput()
	if err == nil || !strings.Contains(string(b), "carries no key") {
		t.Errorf("err %v, said %s", err, b)
	}
}

func TestPackages(t *testing.T) {
	t.Parallel()
	needs(t, "dpkg-deb")
	debs, _ := filepath.Glob(filepath.Join(made.dir, "*.deb"))
	rpms, _ := filepath.Glob(filepath.Join(made.dir, "*.rpm"))
	if len(debs) != 1 || len(rpms) != 1 {
		t.Fatalf("packages: %v %v", debs, rpms)
	}
	root := t.TempDir()
	out(t, "dpkg-deb", "-x", debs[0], root)
	for path, mode := range map[string]os.FileMode{
		"usr/bin/selvage": 0o755, "usr/lib/systemd/system/selvage.service": 0o644, "usr/lib/sysusers.d/selvage.conf": 0o644,
		"etc/selvage/config.yaml": 0o640,
	} {
		info, err := os.Stat(filepath.Join(root, path))
		if err != nil {
			t.Error(err)
		} else if info.Mode().Perm() != mode {
			t.Errorf("%s has mode %o", path, info.Mode().Perm())
		}
	}
	if got := out(t, filepath.Join(root, "usr/bin/selvage"), "--version"); !strings.Contains(got, "1.2.3") {
		t.Error(got)
	}
	program, err := os.ReadFile(filepath.Join(root, "usr/bin/selvage"))
	if err != nil {
		t.Fatal(err)
	}
	files := unpackRPM(t, rpms[0])
	for path, want := range map[string]packed{
		"usr/bin/selvage": {0o755, program}, "usr/lib/systemd/system/selvage.service": {0o644, nil},
		"usr/lib/sysusers.d/selvage.conf": {0o644, nil}, "etc/selvage/config.yaml": {0o640, nil},
	} {
		got, ok := files[path]
		if !ok || got.mode != want.mode || want.content != nil && !bytes.Equal(got.content, want.content) {
			t.Errorf("the rpm has %s: %t, mode %o, %d bytes", path, ok, got.mode, len(got.content))
		}
	}
	control := out(t, "dpkg-deb", "-I", debs[0])
	for _, want := range []string{"Version: 1.2.3", "Package: selvage", "postinst", "prerm", "postrm"} {
		if !strings.Contains(control, want) {
			t.Errorf("control has no %q:\n%s", want, control)
		}
	}
	if _, err := exec.LookPath("systemd-analyze"); err == nil {
		unit, err := os.ReadFile(filepath.Join(root, "usr/lib/systemd/system/selvage.service"))
		if err != nil {
			t.Fatal(err)
		}
		here := filepath.Join(t.TempDir(), "selvage.service")
		if err := os.WriteFile(here, bytes.ReplaceAll(unit, []byte("/usr/bin/selvage"),
			[]byte(filepath.Join(root, "usr/bin/selvage"))), 0o644); err != nil {
			t.Fatal(err)
		}
		if b, err := exec.CommandContext(t.Context(), "systemd-analyze", "verify", "--man=no", here).
			CombinedOutput(); err != nil || strings.Contains(string(b), "selvage.service:") {
			t.Errorf("systemd-analyze verify: %v\n%s", err, b)
		}
	}
}

// The licences of what is linked travel with the program.
func TestLicencesTravelWithTheProgram(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	out(t, "tar", "-xzf", filepath.Join(made.dir, "selvage_1.2.3_linux_"+runtime.GOARCH+".tar.gz"), "-C", dir)
	b, err := os.ReadFile(filepath.Join(dir, "NOTICE"))
	if err != nil || !strings.Contains(string(b), "github.com/hashicorp/raft ") || !strings.Contains(string(b),
		"Mozilla Public License") {
		t.Errorf("NOTICE of the archive: %d bytes, %v", len(b), err)
	}
}

// TestConfigIsRead: a node starts with the file that the packages bring.
func TestConfigIsRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	out(t, "tar", "-xzf", filepath.Join(made.dir, "selvage_1.2.3_linux_"+runtime.GOARCH+".tar.gz"), "-C", dir)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(dir, "selvage"), "up", "--dir", filepath.Join(dir, "data"),
		"--config", "files/config.yaml", "--http", "127.0.0.1:0", "--mesh", "127.0.0.1:0", "--name", "boxed")
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	for b := make([]byte, 4096); !strings.Contains(said.String(), "serves on http"); {
		n, err := stderr.Read(b)
		said.Write(b[:n])
		if err != nil {
			t.Fatalf("it ended: %s", said.String())
		}
	}
	cancel()
	io.Copy(io.Discard, stderr)
	cmd.Wait()
}

func TestBillOfMaterials(t *testing.T) {
	b, err := os.ReadFile(filepath.Join(made.dir, "selvage_1.2.3.cdx.json"))
	if err != nil {
		t.Fatal(err)
	}
	var bill struct {
		BomFormat  string
		Components []struct{ Name, Version string }
	}
	if err := json.Unmarshal(b, &bill); err != nil {
		t.Fatal(err)
	}
	have := map[string]bool{}
	for _, c := range bill.Components {
		have[c.Name] = c.Version != ""
	}
	for _, want := range []string{"std", "github.com/hashicorp/raft", "github.com/cockroachdb/pebble/v2"} {
		if !have[want] {
			t.Errorf("%s is not in the bill", want)
		}
	}
}

// TestSameCommitSameBytes: what was made a second time is the same, whatever
// else this machine did meanwhile.
func TestSameCommitSameBytes(t *testing.T) {
	t.Parallel()
	if err := <-made.err; err != nil {
		t.Fatal(err)
	}
	first, _ := os.ReadFile(filepath.Join(made.dir, "SHA256SUMS"))
	second, _ := os.ReadFile(filepath.Join(made.again, "SHA256SUMS"))
	if !bytes.Equal(first, second) {
		t.Errorf("sums differ:\n%s\n%s", first, second)
	}
}

// TestImage starts a node from the image, made without a daemon.
func TestImage(t *testing.T) {
	t.Parallel()
	needs(t, "podman")
	if os.Getuid() != 0 {
		t.Skip("containers are tried as root only")
	}
	tarball := filepath.Join(made.dir, "selvage_1.2.3_image.tar")
	store := t.TempDir()
	podman := func(args ...string) *exec.Cmd {
		base := []string{"--root", filepath.Join(store, "root"), "--runroot", filepath.Join(store, "run"), "--storage-driver",
			"vfs", "--cgroup-manager", "cgroupfs", "--events-backend", "file"}
		if _, err := exec.LookPath("runc"); err == nil {
			base = append(base, "--runtime", "runc")
		}
		return exec.CommandContext(t.Context(), "podman", append(base, args...)...)
	}
	image, err := podman("pull", "-q", "oci-archive:"+tarball).Output()
	if err != nil {
		if e, ok := err.(*exec.ExitError); ok {
			err = fmt.Errorf("%w: %s", err, e.Stderr)
		}
		t.Fatalf("the engine does not take the image: %v", err)
	}
	id := strings.TrimSpace(string(image))
	t.Cleanup(func() { // what is mounted there can not be removed otherwise
		c := exec.Command("podman", "--root", filepath.Join(store, "root"), "--runroot", filepath.Join(store, "run"),
			"--storage-driver", "vfs", "rm", "-af", "-t", "0")
		c.Run()
	})
	limits := []string{"run", "--rm", "--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024", "--network", "none"}
	b, err := podman(append(limits, id, "--version")...).CombinedOutput()
	if err != nil {
		if strings.Contains(string(b), "permission") || strings.Contains(string(b), "not permitted") {
			t.Skipf("this machine starts no containers: %s", b)
		}
		t.Fatalf("%v\n%s", err, b)
	}
	if !strings.Contains(string(b), "1.2.3") {
		t.Errorf("the image says %s", b)
	}
	// The image's own command line, for as long as it takes to serve.
	node := podman(append(limits, "--name", "edge-test", "--read-only", "-v", "/data", "--tmpfs", "/tmp", id)...)
	pipe, err := node.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := node.Start(); err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	for b := make([]byte, 4096); !strings.Contains(said.String(), "serves on http"); {
		n, err := pipe.Read(b)
		said.Write(b[:n])
		if err != nil {
			t.Fatalf("the node ended: %s", said.String())
		}
	}
	podman("stop", "-t", "30", "edge-test").Run()
	io.Copy(io.Discard, pipe)
	node.Wait()
}
