// Command edge makes what a release of selvage consists of: static builds for
// every platform, packages for Debian and Red Hat systems, a container image made
// without a daemon, a bill of materials, and sums that are signed. It is a module
// of its own: nothing of it is part of the program.
//
//	edge -out DIR [-version V] [-targets linux/arm64,…] [-key FILE]
//	edge keygen FILE
package main

import (
	"archive/tar"
	"bytes"
	"cmp"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/gzip"
)

// targets are what a release has, as GOOS/GOARCH or GOOS/GOARCH/GOARM. Windows
// is not among them: a run's process tree is held by means of Unix.
var targets = []string{
	"linux/amd64", "linux/arm64", "linux/arm/7", "linux/riscv64",
	"darwin/amd64", "darwin/arm64",
}

// compilerGC is $GOGC of the compiler: collecting its garbage less often saves time and
// costs memory, some 100 MB for each package that is compiled at once.
const compilerGC = "400"

// archiveLevel is how far archives are compressed. The highest level, 9, takes three times as
// long for a third of a percent less.
const archiveLevel = 8

// A target is one platform.
type target struct{ os, arch, arm string }

func (t target) String() string {
	if t.arm != "" {
		return t.os + "_" + t.arch + "v" + t.arm
	}
	return t.os + "_" + t.arch
}

func parseTarget(s string) (target, error) {
	part := strings.Split(s, "/")
	if len(part) < 2 || len(part) > 3 || slices.Contains(part, "") {
		return target{}, fmt.Errorf("target %q: write GOOS/GOARCH, for example linux/arm64 or linux/arm/7", s)
	}
	t := target{os: part[0], arch: part[1]}
	if len(part) == 3 {
		t.arm = part[2]
	}
	return t, nil
}

// A release is what is being made.
type release struct {
	root    string // of the repository
	out     string
	version string // without a leading v
	when    time.Time
	targets []target
	binary  map[target]string // path of the built program
	mu      sync.Mutex        // guards made while things are packed
	made    []string          // names of files below out
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "edge:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 2 && args[0] == "keygen" {
		return keygen(args[1])
	}
	f := flag.NewFlagSet("edge", flag.ContinueOnError)
	out := f.String("out", "dist", "folder for what is made")
	root := f.String("root", ".", "the repository")
	version := f.String("version", "", "version; default: from git")
	list := f.String("targets", strings.Join(targets, ","), "platforms, as GOOS/GOARCH[/GOARM]")
	key := f.String("key", "", "file with the Ed25519 key (PEM, PKCS 8) that signs the sums; see keygen")
	if err := f.Parse(args); err != nil {
		return err
	}
	if f.NArg() > 0 {
		return fmt.Errorf("unknown argument %q", f.Arg(0))
	}
	r := &release{root: *root, out: *out, binary: map[target]string{}}
	for _, s := range strings.Split(*list, ",") {
		t, err := parseTarget(s)
		if err != nil {
			return err
		}
		r.targets = append(r.targets, t)
	}
	var err error
	if r.version, err = r.describe(ctx, *version); err != nil {
		return err
	}
	if r.when, err = r.commitTime(ctx); err != nil {
		return err
	}
	if err := os.MkdirAll(r.out, 0o755); err != nil {
		return err
	}
	// What is made of one build is packed while the next one is made.
	var errs []error
	var packing sync.WaitGroup
	turn := make(chan struct{}, max(1, runtime.NumCPU()))
	pack := func(what string, f func() error) {
		packing.Go(func() {
			turn <- struct{}{}
			defer func() { <-turn }()
			if err := f(); err != nil {
				r.mu.Lock()
				defer r.mu.Unlock()
				errs = append(errs, fmt.Errorf("%s: %w", what, err))
			}
		})
	}
	began := time.Now()
	say := func(at time.Time, what string) {
		fmt.Printf("%s in %s, %s since the start\n", what, time.Since(at).Round(time.Second),
			time.Since(began).Round(time.Second))
	}
	for i, t := range r.targets {
		at := time.Now()
		fmt.Printf("%d of %d: %s…\n", i+1, len(r.targets), t)
		if err := r.build(ctx, t); err != nil {
			packing.Wait()
			return errors.Join(append(errs, fmt.Errorf("build %s: %w", t, err))...)
		}
		say(at, "built "+t.String())
		program := r.binary[t]
		pack("archive "+t.String(), func() error { return r.archive(t, program) })
		for _, format := range []string{"deb", "rpm"} {
			if t.os == "linux" {
				pack(format+" for "+t.String(), func() error { return r.pack(t, program, format) })
			}
		}
	}
	at := time.Now()
	pack("image", r.image)
	packing.Wait()
	say(at, "packed the rest")
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if err := r.bill(); err != nil {
		return fmt.Errorf("bill of materials: %w", err)
	}
	if err := r.installer(*key); err != nil {
		return err
	}
	return r.sums(*key)
}

// describe returns the version: the given one, or the nearest tag and what came
// after it, in a form that package managers order.
func (r *release) describe(ctx context.Context, given string) (string, error) {
	if given != "" {
		return strings.TrimPrefix(given, "v"), nil
	}
	out, err := exec.CommandContext(ctx, "git", "-C", r.root, "describe", "--tags", "--always", "--dirty").Output()
	if err != nil {
		return "", fmt.Errorf("no version: git describe: %w; give one with -version", err)
	}
	v := strings.TrimSpace(string(out))
	if rest, ok := strings.CutPrefix(v, "v"); ok && rest != "" && rest[0] >= '0' && rest[0] <= '9' {
		return rest, nil
	}
	return "0.0.0-" + v, nil // no tag yet: a commit
}

// commitTime is the time that everything in a release carries, so that building
// the same commit again gives the same bytes. $SOURCE_DATE_EPOCH goes before.
func (r *release) commitTime(ctx context.Context) (time.Time, error) {
	s := os.Getenv("SOURCE_DATE_EPOCH")
	if s == "" {
		out, err := exec.CommandContext(ctx, "git", "-C", r.root, "log", "-1", "--format=%ct").Output()
		if err != nil {
			return time.Time{}, fmt.Errorf("time of the commit: %w; set SOURCE_DATE_EPOCH", err)
		}
		s = strings.TrimSpace(string(out))
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("SOURCE_DATE_EPOCH: %w", err)
	}
	return time.Unix(n, 0).UTC(), nil
}

// build makes the program for a target, static and without paths of this machine.
func (r *release) build(ctx context.Context, t target) error {
	path, err := filepath.Abs(filepath.Join(r.out, "bin", t.String(), "selvage"))
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags",
		"-s -w -X main.version="+r.version, "-o", path, "./cmd/node")
	cmd.Dir = r.root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOOS="+t.os, "GOARCH="+t.arch)
	if os.Getenv("GOGC") == "" {
		cmd.Env = append(cmd.Env, "GOGC="+compilerGC)
	}
	if t.arm != "" {
		cmd.Env = append(cmd.Env, "GOARM="+t.arm)
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	r.binary[t] = path
	return nil
}

// A file of an archive or a layer.
type file struct {
	name string
	mode int64
	body []byte
	dir  bool
	uid  int
}

// contents are what an archive holds beside the program.
func (r *release) contents(program string) ([]file, error) {
	var all []file
	for name, src := range map[string]string{"LICENSE": "LICENSE", "NOTICE": "NOTICE", "README.md": "README.md"} {
		b, err := os.ReadFile(filepath.Join(r.root, src))
		if err != nil {
			return nil, err
		}
		all = append(all, file{name: name, mode: 0o644, body: b})
	}
	b, err := os.ReadFile(program)
	if err != nil {
		return nil, err
	}
	all = append(all, file{name: "selvage", mode: 0o755, body: b})
	slices.SortFunc(all, func(a, b file) int { return cmp.Compare(a.name, b.name) })
	return all, nil
}

func (r *release) archive(t target, program string) error {
	all, err := r.contents(program)
	if err != nil {
		return err
	}
	return r.write("selvage_"+r.version+"_"+t.String()+".tar.gz", func(w io.Writer) error {
		z, err := gzip.NewWriterLevel(w, archiveLevel)
		if err != nil {
			return err
		}
		return errors.Join(r.tar(z, all), z.Close())
	})
}

func (r *release) tar(w io.Writer, all []file) error {
	t := tar.NewWriter(w)
	for _, f := range all {
		h := &tar.Header{Name: f.name, Mode: f.mode, Size: int64(len(f.body)), ModTime: r.when, Typeflag: tar.TypeReg,
			Uid: f.uid, Gid: f.uid, Format: tar.FormatPAX}
		if f.dir {
			h.Typeflag, h.Name = tar.TypeDir, f.name+"/"
		}
		if err := t.WriteHeader(h); err != nil {
			return err
		}
		if _, err := t.Write(f.body); err != nil {
			return err
		}
	}
	return t.Close()
}

// write makes one file of the release: whole, or not at all.
func (r *release) write(name string, fill func(io.Writer) error) error {
	path := filepath.Join(r.out, name)
	f, err := os.CreateTemp(r.out, ".making-")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	if err := errors.Join(fill(f), f.Chmod(0o644), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.made = append(r.made, name)
	return nil
}

// keyMark stands in the install script where the release's public key belongs.
const keyMark = "@RELEASE-KEY@"

// installer puts the install script beside what it installs, with the public
// key of the release in it.
func (r *release) installer(key string) error {
	script, err := os.ReadFile(filepath.Join(r.root, "deploy/edge/files/install.sh"))
	if err != nil {
		return err
	}
	if key != "" {
		k, err := readKey(key)
		if err != nil {
			return err
		}
		pub, err := publicPEM(k.Public().(ed25519.PublicKey))
		if err != nil {
			return err
		}
		script = bytes.Replace(script, []byte(keyMark), bytes.TrimSpace(pub), 1)
	}
	return r.write("install.sh", func(w io.Writer) error { _, err := w.Write(script); return err })
}

func publicPEM(k ed25519.PublicKey) ([]byte, error) {
	der, err := x509.MarshalPKIXPublicKey(k)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), nil
}

// sums writes SHA256SUMS over all that was made, and signs it where there is a key.
func (r *release) sums(key string) error {
	var b bytes.Buffer
	slices.Sort(r.made)
	for _, name := range r.made {
		body, err := os.ReadFile(filepath.Join(r.out, name))
		if err != nil {
			return err
		}
		sum := sha256.Sum256(body)
		fmt.Fprintf(&b, "%s  %s\n", hex.EncodeToString(sum[:]), name)
	}
	if err := os.WriteFile(filepath.Join(r.out, "SHA256SUMS"), b.Bytes(), 0o644); err != nil {
		return err
	}
	sig := filepath.Join(r.out, "SHA256SUMS.sig")
	if key == "" {
		fmt.Println("not signed: no -key")
		return errors.Join(ignoreAbsent(os.Remove(sig)))
	}
	k, err := readKey(key)
	if err != nil {
		return err
	}
	return os.WriteFile(sig, ed25519.Sign(k, b.Bytes()), 0o644)
}

func ignoreAbsent(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

func readKey(path string) (ed25519.PrivateKey, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(b)
	if block == nil {
		return nil, fmt.Errorf("%s holds no PEM block: make a key with edge keygen", path)
	}
	k, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	ed, ok := k.(ed25519.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("%s holds no Ed25519 key", path)
	}
	return ed, nil
}

// keygen makes the key that signs releases: FILE is secret, FILE.pub goes to
// those who install.
func keygen(path string) error {
	pub, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		return err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if err := errors.Join(pem.Encode(f, &pem.Block{Type: "PRIVATE KEY", Bytes: der}), f.Close()); err != nil {
		return err
	}
	public, err := publicPEM(pub)
	if err != nil {
		return err
	}
	return os.WriteFile(path+".pub", public, 0o644)
}
