package identity

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"strings"
)

// The file of an identity, mode 0600, is text so that an operator can see what
// it is. It has exactly these lines, in this order:
//
//	selvage identity v1
//	node <base64 of the Ed25519 seed, 32 bytes>
//	noise <base64 of the X25519 private key, 32 bytes>
//	seal <base64 of the X25519 private key, 32 bytes>
//	secret <base64 of 32 bytes, see Keys.Local>
//	incarnation <16 hex digits>
//	machine <32 hex digits, or "-" when the machine has no ID>
//	sum <SHA-256 of all lines before it, 64 hex digits>
//
// Earlier programs wrote no sum; a file without one is accepted. A file with another first line
// was written by another version; every deviation is an error, never repaired silently.
const (
	fileName   = File
	fileHeader = "selvage identity v1"
	noMachine  = "-"

	incarnationBytes = 8

	// maxFile bounds what is read of a file that should have under 400 bytes.
	maxFile = 4096
)

// File is the name of the file with a node's keys, in its data directory.
const File = "identity.key"

var (
	// ErrForeignMachine is returned by [Load] when the data directory was made
	// on another machine. Two nodes with one key would vote twice.
	ErrForeignMachine = errors.New("this data directory belongs to another machine; " +
		"if it was copied, run `selvage identity reset` to make it a new node; " +
		"if its disk moved here and the other machine is gone for good, run `selvage identity reset --keep`")

	// ErrNoIdentity is returned by [Load] when the directory holds none.
	ErrNoIdentity = errors.New("no identity in this directory")

	// ErrExists is returned by [Create] when the directory holds an identity.
	ErrExists = errors.New("this directory holds an identity already")
)

// Load reads the identity in dir. machine is the ID of the machine that this
// runs on (see [MachineID]); [ErrForeignMachine] says that the identity was made
// on another one, [ErrNoIdentity] that there is none. An identity that was
// made when the machine had no ID is bound to the machine now.
func Load(dir, machine string) (*Keys, error) {
	root, err := openRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	k, bound, err := read(root)
	if err != nil {
		return nil, err
	}
	here := k.machineTag(machine)
	if bound == noMachine && here != noMachine {
		return k, write(root, k.encode(here))
	}
	if bound != here {
		return nil, ErrForeignMachine
	}
	return k, nil
}

// Create draws a new identity and writes it to dir, which is made (mode 0700)
// when it does not exist. It never replaces an identity: [ErrExists].
func Create(dir, machine string) (*Keys, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("create identity: %w", err)
	}
	root, err := openRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	if _, err := root.Lstat(fileName); err == nil {
		return nil, ErrExists
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("create identity: %w", err)
	}
	k := New()
	return k, write(root, k.encode(k.machineTag(machine)))
}

// LoadOrCreate loads the identity in dir, or creates one when there is none.
func LoadOrCreate(dir, machine string) (*Keys, error) {
	k, err := Load(dir, machine)
	if errors.Is(err, ErrNoIdentity) {
		return Create(dir, machine)
	}
	return k, err
}

// Reincarnate gives the node in dir a new incarnation and returns its keys.
// It is called whenever the raft log or the stable values were lost or rebuilt.
func Reincarnate(dir, machine string) (*Keys, error) {
	k, err := Load(dir, machine)
	if err != nil {
		return nil, err
	}
	return rebind(dir, machine, k)
}

// Reset gives a copied directory an identity of its own: it draws all keys anew. The state in
// the directory then belongs to another node, and the caller must remove it. With keep the
// keys stay (the disk was moved and the other machine is gone for good) and only the
// incarnation is new. Reset does not check the machine: operators use it after
// [ErrForeignMachine].
func Reset(dir, machine string, keep bool) (*Keys, error) {
	if !keep {
		return rebind(dir, machine, New())
	}
	root, err := openRoot(dir)
	if err != nil {
		return nil, err
	}
	k, _, err := read(root)
	root.Close()
	if err != nil {
		return nil, err
	}
	return rebind(dir, machine, k)
}

// rebind writes k to dir with a new incarnation, bound to machine.
func rebind(dir, machine string, k *Keys) (*Keys, error) {
	root, err := openRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	k.Incarnation = newIncarnation()
	return k, write(root, k.encode(k.machineTag(machine)))
}

func newIncarnation() string {
	var b [incarnationBytes]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

func openRoot(dir string) (*os.Root, error) {
	root, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNoIdentity
	}
	if err != nil {
		return nil, fmt.Errorf("open data directory: %w", err)
	}
	return root, nil
}

func read(root *os.Root) (*Keys, string, error) {
	f, err := root.Open(fileName)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, "", ErrNoIdentity
	}
	if err != nil {
		return nil, "", fmt.Errorf("open identity: %w", err)
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, "", fmt.Errorf("open identity: %w", err)
	}
	if runtime.GOOS != "windows" && st.Mode().Perm()&0o077 != 0 {
		return nil, "", fmt.Errorf("%s holds private keys but others may read it (mode %04o); run chmod 600 on it", f.Name(),
			st.Mode().Perm())
	}
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, "", fmt.Errorf("read identity: %w", err)
	}
	return decodeKeys(b)
}

// write replaces the file atomically: after a crash the file is the old or the new one, never a
// part.
func write(root *os.Root, b []byte) error {
	const tmp = fileName + ".new"
	f, err := root.OpenFile(tmp, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("write identity: %w", err)
	}
	_, err = f.Write(b)
	err = errors.Join(err, f.Chmod(0o600), f.Sync(), f.Close())
	if err == nil {
		err = root.Rename(tmp, fileName)
	}
	if err == nil {
		err = syncDir(root)
	}
	if err != nil {
		return fmt.Errorf("write identity: %w", err)
	}
	return nil
}

func syncDir(root *os.Root) error {
	if runtime.GOOS == "windows" {
		return nil // directories can not be synced there
	}
	d, err := root.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func (k *Keys) encode(machine string) []byte {
	var b bytes.Buffer
	line := func(name string, secret []byte) {
		fmt.Fprintf(&b, "%s %s\n", name, base64.StdEncoding.EncodeToString(secret))
	}
	b.WriteString(fileHeader + "\n")
	line("node", k.Node.Seed())
	line("noise", k.Noise.Bytes())
	line("seal", k.Seal.Bytes())
	line("secret", k.secret[:])
	fmt.Fprintf(&b, "incarnation %s\nmachine %s\n", k.Incarnation, machine)
	fmt.Fprintf(&b, "sum %x\n", sha256.Sum256(b.Bytes()))
	return b.Bytes()
}

// errDamaged says what to do about an identity file that can not be read: there is no other
// copy of the keys.
func errDamaged(why error) error {
	return fmt.Errorf("identity file (%s) is damaged: %w; put it back from a copy of this machine's disk. If there is "+
		"none this node is lost: "+
		"on another member run `selvage node remove` with its name, move this data directory away, and join with a new token",
		fileName, why)
}

func decodeKeys(b []byte) (k *Keys, machine string, err error) {
	if len(b) > maxFile {
		return nil, "", errDamaged(errors.New("it is too long"))
	}
	lines := strings.Split(string(b), "\n")
	if lines[0] != fileHeader {
		return nil, "", errDamaged(fmt.Errorf("it does not begin with %q; it may be of another version", fileHeader))
	}
	sum := ""
	if len(lines) == 9 && lines[8] == "" {
		sum = lines[7]
		lines = append(lines[:7], "")
	}
	if len(lines) != 8 || lines[7] != "" {
		return nil, "", errDamaged(errors.New("it is cut short or has extra lines"))
	}
	var problems []error
	field := func(i int, name string) string {
		v, ok := strings.CutPrefix(lines[i], name+" ")
		if !ok {
			problems = append(problems, fmt.Errorf("line %d should be %q", i+1, name))
		}
		return v
	}
	key := func(i int, name string) []byte {
		s := field(i, name)
		v, err := base64.StdEncoding.Strict().DecodeString(s)
		if err != nil || len(v) != 32 || len(s) != 44 { // base64 passes over line ends
			problems = append(problems, fmt.Errorf("line %d should hold 32 bytes in base64", i+1))
			return make([]byte, 32)
		}
		return v
	}
	digits := func(i int, name string, bytes int) string {
		v := field(i, name)
		if raw, err := hex.DecodeString(v); err != nil || len(raw) != bytes || hex.EncodeToString(raw) != v {
			problems = append(problems, fmt.Errorf("line %d should hold %d hex digits", i+1, 2*bytes))
		}
		return v
	}
	k = &Keys{Node: ed25519.NewKeyFromSeed(key(1, "node"))}
	k.Noise, k.Seal = mustX25519(key(2, "noise")), mustX25519(key(3, "seal"))
	copy(k.secret[:], key(4, "secret"))
	k.Incarnation = digits(5, "incarnation", incarnationBytes)
	if machine = field(6, "machine"); machine != noMachine {
		machine = digits(6, "machine", idBytes)
	}
	if err := errors.Join(problems...); err != nil {
		return nil, "", errDamaged(err)
	}
	if sum != "" && sum != fmt.Sprintf("sum %x", sha256.Sum256(b[:len(b)-len(sum)-1])) {
		return nil, "", errDamaged(errors.New("it does not have its sum"))
	}
	return k, machine, nil
}
